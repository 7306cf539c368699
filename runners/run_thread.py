"""The thread in which one run of an in-process runner lives."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic
from typing import Any

import structlog

from runhost.protocol import AgentRunContext
from runhost.sdk.connection import HostConnection, connect
from runners.blocking_calls import BlockingCalls
from runners.errors import RunnerCrashed, RunnerError
from runners.frames import error_position, thread_position
from runners.handoff import Handoff
from runners.host_bridge import HostBridge
from runners.interrupts import RunnerInterrupted, raise_in
from runners.pump import pump_results, start_generator
from runners.registry import RegisteredRunner

CLEANUP_SECONDS = 0.5
"""What tasks and generators that a runner left behind get to end, once the runner itself has."""

STUCK_SECONDS = 0.05
"""A turn of the loop that has taken this long may be interrupted; shorter ones end by themselves."""

BLOCKING_CALLS = 8
"""Calls of `asyncio.to_thread` that one run may have at the same time."""

logger = structlog.get_logger(__name__)


class _WatchedSelector(selectors.DefaultSelector):
    """Selector that knows since when its loop has not come back to it.

    Reading one attribute tells an idle loop from a busy one without waking it, which pings would do.
    """

    busy_since: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.busy_since = None
        try:
            return super().select(timeout)
        finally:
            self.busy_since = monotonic()


class RunThread:
    """Runs one generator on a thread and an event loop of its own, and hands its results over.

    Built and commanded on the worker's loop. The thread ends when the generator has ended, and its loop is
    closed then. It starts with an empty context, so no context variable of the worker reaches the runner.

    Args:
        runner: what to run; its instance is made inside the thread, as imports may take long.
        context: context of the run.
        host: the host API of this attempt, used on the worker's loop.
        capacity: results that may wait for the reader.
    """

    def __init__(self, runner: RegisteredRunner, context: AgentRunContext, host: HostConnection, capacity: int) -> None:
        self.run_id = context.run_id
        self.building = True
        self.gone = asyncio.Event()
        name = f"run-{context.run_id}"
        self._runner = runner
        self._context = context
        self._bridge = HostBridge(host)
        self._host_loop = asyncio.get_running_loop()
        self._selector = _WatchedSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._loop.set_exception_handler(self._report)
        self._calls = BlockingCalls(name, BLOCKING_CALLS)
        self._loop.set_default_executor(self._calls)
        self.handoff = Handoff(capacity, self._loop)
        self._pump_task: asyncio.Task[None] | None = None
        self._stopping = False
        self._broken_off = False
        self._guard = Lock()
        self._interruptible = True
        self._thread = Thread(target=self._main, name=name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # The system gives no more threads: without this the loop's descriptors would leak too.
            self._loop.close()
            raise

    @property
    def busy_since(self) -> float | None:
        """Monotonic second since which the loop has been in one turn; None while it waits."""
        return self._selector.busy_since

    @property
    def position(self) -> str:
        """The line that the thread is in."""
        return thread_position(self._thread.ident or 0, self._runner.folder)

    @property
    def blocking_calls(self) -> int:
        """Calls on other threads that have not returned yet."""
        return self._calls.busy

    def ask(self, reason: str) -> None:
        """Cancel the generator, once. It sees `CancelledError(reason)` where it awaits or yields."""
        if self._stopping:
            return
        self._stopping = True
        self._command(self._cancel, reason)

    def break_off(self) -> None:
        """End the loop in the midst of what its tasks do; enough for a runner that ignores cancellation."""
        self._stopping = self._broken_off = True
        self._bridge.close()
        self.handoff.end()
        self._command(self._loop.stop)

    def interrupt(self) -> None:
        """Raise `RunnerInterrupted` in a thread that is stuck; enough for a busy loop, not for a call into C code."""
        self.handoff.end()
        since = self.busy_since
        if since is None or monotonic() - since < STUCK_SECONDS:
            return
        # Under the guard the thread cannot end meanwhile and leave its id to an innocent one.
        with self._guard:
            if self._interruptible and self._thread.ident is not None:
                raise_in(self._thread.ident, RunnerInterrupted)

    def _command(self, callback: Callable[..., None], *args: object) -> None:
        # A closed loop has nothing left to command.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *args)

    def _say_gone(self) -> None:
        self._bridge.close()
        self.gone.set()

    # Everything below runs in the thread.

    def _main(self) -> None:
        steps = deque((self._play, self._clean_up))
        try:
            while self._interruptible:
                try:
                    while steps:
                        steps.popleft()()
                    self._shut_out_interrupts()
                except RunnerInterrupted:
                    # It strikes at any instruction. The step it struck is over, the next ones have to be done.
                    continue
        finally:
            self._leave()

    def _play(self) -> None:
        # The thread has a context of its own, and so has the task that starts in it.
        connect(self._bridge)
        pump = self._pump_task = self._loop.create_task(self._pump())
        pump.add_done_callback(lambda _: self._loop.stop())
        exit_error: BaseException | None = None
        try:
            # The loop is stopped by the host, by the end of the pump, and by runners that know no better.
            while not (pump.done() or self._broken_off):
                self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio lets these two through, whichever task they come from.
            exit_error = error
        finally:
            self.building = False
        self.handoff.end(self._outcome(pump, exit_error))

    def _outcome(self, task: "asyncio.Task[None]", exit_error: BaseException | None) -> RunnerError | None:
        error = exit_error
        if task.done():
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None or self._broken_off or (self._stopping and isinstance(error, asyncio.CancelledError)):
            return None
        return RunnerCrashed(type(error).__name__, _text(error), error_position(error, self._runner.folder))

    async def _pump(self) -> None:
        runner = self._runner.instance()
        self.building = False
        # A turn of the loop, so that the time of the import does not count as blocking.
        await asyncio.sleep(0)
        await pump_results(start_generator(runner, self._context, self._runner.runner_id), self.handoff)

    def _cancel(self, reason: str) -> None:
        if self._pump_task is not None:
            # Room for last words even when the buffer is full and nobody reads any more.
            self.handoff.capacity *= 2
            self._pump_task.cancel(reason)

    def _clean_up(self) -> None:
        cleaning = self._loop.create_task(self._end_leftovers())
        cleaning.add_done_callback(lambda _: self._loop.stop())
        while not cleaning.done():
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    async def _end_leftovers(self) -> None:
        leftovers = asyncio.all_tasks() - {asyncio.current_task()}
        for task in leftovers:
            task.cancel()
        if leftovers:
            await asyncio.wait(leftovers, timeout=CLEANUP_SECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._loop.shutdown_asyncgens(), CLEANUP_SECONDS)

    def _shut_out_interrupts(self) -> None:
        with self._guard:
            self._interruptible = False
            raise_in(self._thread.ident or 0, None)

    def _leave(self) -> None:
        self._loop.close()
        # A closed host loop means that the worker has ended and nobody waits.
        with suppress(RuntimeError):
            self._host_loop.call_soon_threadsafe(self._say_gone)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what a runner's loop complains about, without its text: it may quote users."""
        error = context.get("exception")
        if isinstance(error, RunnerInterrupted):
            # It struck in a callback, where asyncio swallows it.
            loop.stop()
            return
        if self._broken_off:
            # It complains about being broken off.
            return
        logger.warning(
            "runner.loop_complained",
            run_id=self.run_id,
            runner_id=self._runner.runner_id,
            error_type=type(error).__name__ if error is not None else None,
            position=error_position(error, self._runner.folder) if error is not None else None,
        )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as worse:  # noqa: BLE001  a runner's exception may fail to describe itself in any way
        return f"(its text cannot be had: {type(worse).__name__})"
