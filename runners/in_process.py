"""Runs runners inside the worker, each run on a thread and an event loop of its own."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import structlog

from runhost.protocol import AgentRunContext, AgentRunnerDescriptor
from runhost.sdk.connection import HostConnection
from runners.errors import RunnerBlocked
from runners.registry import RunnerRegistry
from runners.run_thread import RunThread
from runners.transport import Residual, StopReason

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InProcessLimits:
    """Limits of runs inside a worker.

    Attributes:
        buffered_results: results of one run that may wait before the runner is paused.
        blocked_after_seconds: how long a runner may hold its loop; it is named at most a quarter later.
        build_seconds: the same while its code is imported and its instance made, which large libraries need.
        force_seconds: what each of the two means of force gets to work, see `InProcessSession.stop`; longer than
            what tasks that a runner left get to end.
    """

    buffered_results: int = 256
    blocked_after_seconds: float = 4.0
    build_seconds: float = 60.0
    force_seconds: float = 1.0

    @property
    def look_seconds(self) -> float:
        """Time between two looks at the running threads."""
        return self.blocked_after_seconds / 8


class InProcessSession:
    """One run on its thread; see `RunnerSession` for the contract."""

    def __init__(self, thread: RunThread, runner_id: str, limits: InProcessLimits) -> None:
        self._thread = thread
        self._runner_id = runner_id
        self._limits = limits
        self._turn: float | None = None
        self._turn_seconds = 0.0
        self._condemned = False

    @property
    def gone(self) -> bool:
        """Whether the thread has ended."""
        return self._thread.gone.is_set()

    @property
    def condemned(self) -> bool:
        """Whether the host has let go of a thread that would not end; it is interrupted until it does."""
        return self._condemned and not self.gone

    async def next_batch(self) -> list[object]:
        """Wait for results and take all that are there; empty at the end."""
        return await self._thread.handoff.take()

    async def results(self) -> AsyncIterator[object]:
        """The results one by one."""
        while batch := await self.next_batch():
            for result in batch:
                yield result

    async def stop(self, reason: StopReason, grace_seconds: float) -> Residual | None:
        """Cancel the generator, wait, break its loop, interrupt its thread; then say what is left."""
        self._thread.ask(reason)
        try:
            # A runner that was found blocked has had its time.
            if await self._ends_within(0 if self._condemned else grace_seconds):
                return self._blocking_calls()
            logger.warning("runner.broken_off", runner_id=self._runner_id, run_id=self._thread.run_id)
            self._thread.break_off()
            if await self._ends_within(self._limits.force_seconds):
                return self._blocking_calls()
            self._condemn()
            if await self._ends_within(self._limits.force_seconds):
                return self._blocking_calls()
        except asyncio.CancelledError:
            self._thread.break_off()
            self._condemned = True
            raise
        position = self._thread.position
        self._warn("runner.left_behind", position)
        return Residual("thread", f"the thread of {self._runner_id} is still in {position}")

    def look(self) -> None:
        """Judge the thread, once every `look_seconds`.

        Time is counted in looks, so that a worker that was itself held up blames nobody for it.
        """
        turn = self._thread.busy_since
        if turn != self._turn or turn is None:
            self._turn, self._turn_seconds = turn, 0.0
        else:
            self._turn_seconds += self._limits.look_seconds
        if self._turn_seconds >= self._patience_seconds and not self._condemned:
            self._fail_blocked()
        if self._condemned:
            self._condemn()

    @property
    def _patience_seconds(self) -> float:
        return self._limits.build_seconds if self._thread.building else self._limits.blocked_after_seconds

    def _fail_blocked(self) -> None:
        position = self._thread.position
        self._warn("runner.blocked", position)
        self._thread.handoff.end(RunnerBlocked(position, self._turn_seconds))
        self._condemned = True

    def _condemn(self) -> None:
        self._condemned = True
        # An import that is cut short may leave a library that cannot be loaded again: imports get their time.
        if not self._thread.building or self._turn_seconds >= self._limits.build_seconds:
            # Both: an interrupt reaches busy code, but not a loop that sleeps.
            self._thread.interrupt()
            self._thread.break_off()

    async def _ends_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._thread.gone.wait()
        except TimeoutError:
            return False
        return True

    def _blocking_calls(self) -> Residual | None:
        count = self._thread.blocking_calls
        if count == 0:
            return None
        detail = f"calls of asyncio.to_thread by {self._runner_id} that have not returned: {count}"
        return Residual("blocking_calls", detail)

    def _warn(self, event: str, position: str) -> None:
        logger.warning(event, runner_id=self._runner_id, run_id=self._thread.run_id, position=position)


class InProcessTransport:
    """Transport of the runners that a registry holds; build and use it on the worker's loop.

    What happens to one runner (it blocks, floods, crashes, never ends) reaches only its own session. Two
    things cannot be kept apart inside one process: the memory, and the interpreter lock while C code holds
    it. Runners that are not trusted with those belong in a process of their own.
    """

    def __init__(self, registry: RunnerRegistry, limits: InProcessLimits | None = None) -> None:
        self._registry = registry
        self._limits = limits or InProcessLimits()
        self._sessions: set[InProcessSession] = set()
        self._next_look: asyncio.TimerHandle | None = None

    @property
    def open_threads(self) -> int:
        """Threads that have not ended, as far as the last look knows."""
        return len(self._sessions)

    @property
    def condemned_threads(self) -> int:
        """Threads that would not end and that the host no longer waits for; a number to watch."""
        return sum(session.condemned for session in self._sessions)

    def open(
        self, descriptor: AgentRunnerDescriptor, context: AgentRunContext, host: HostConnection
    ) -> InProcessSession:
        """Start the runner's thread; it reaches the host through `host`.

        Raises:
            RunnerNotFound: the registry does not hold that runner.
            OSError, RuntimeError: the system has no more descriptors or threads to give.
        """
        runner = self._registry.registered(descriptor.id)
        thread = RunThread(runner, context, host, self._limits.buffered_results)
        session = InProcessSession(thread, descriptor.id, self._limits)
        self._sessions.add(session)
        if self._next_look is None:
            self._plan_look()
        return session

    def _plan_look(self) -> None:
        self._next_look = asyncio.get_running_loop().call_later(self._limits.look_seconds, self._look)

    def _look(self) -> None:
        self._sessions = {session for session in self._sessions if not session.gone}
        self._next_look = None
        if self._sessions:
            self._plan_look()
        for session in self._sessions:
            session.look()
