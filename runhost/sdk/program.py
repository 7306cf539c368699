"""Runs a runner as a program of its own, for one run (docs/subprocess-runners.md).

The same class that a worker can load runs unchanged: `python -m runhost.sdk.program runner.py:Greeter`, or with the
name of a module instead of its path. The host's messages come on standard input, results and calls go to standard
output; what the code prints goes to standard error. SIGTERM, a `cancel` of the host and the end of its input raise
`asyncio.CancelledError` in the runner, once. The program exits with 0 when the runner has come to its end.
"""

import asyncio
import importlib
import inspect
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine
from io import FileIO
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any, Final

from runhost.protocol import AgentRunContext, AgentRunnerManifest, AgentRunResult, JsonObject
from runhost.sdk.connection import connected
from runhost.sdk.loading import adopt_folder
from runhost.sdk.runner import AgentRunner
from runhost.sdk.stdio import LineOutput, StdioConnection, encode_result, read_lines, take_over_stdio

EXIT_CANCELLED: Final = 128 + signal.SIGTERM
"""Exit status of a runner that was cancelled and let that pass."""

_EXIT_CRASHED: Final = 1
_EXIT_USAGE: Final = 2


def serve(runner_class: type[AgentRunner]) -> int:
    """Run a class for the run that the host sends, and return the exit status.

    Call it in the program's main thread, once. Nothing may have been printed before.
    """
    return _serve(lambda: runner_class)


def main(arguments: list[str]) -> int:
    """Run the class that the one argument names, as `path.py:Class` or `package.module:Class`."""
    place, _, attr = (arguments[0] if len(arguments) == 1 else "").rpartition(":")
    if not place or not attr:
        sys.stderr.write("usage: python -m runhost.sdk.program path.py:Class\n")
        return _EXIT_USAGE
    return _serve(lambda: load_class(place, attr))


def load_class(place: str, attr: str) -> type[AgentRunner]:
    """Import a runner's class; the code may raise anything.

    Args:
        place: path of the module, below the working directory, or its name.
        attr: name of the class.

    Raises:
        TypeError: that is no `AgentRunner`.
    """
    if place.endswith(".py"):
        place = ".".join((adopt_folder(Path.cwd()), *PurePosixPath(place).with_suffix("").parts))
    found: object = getattr(importlib.import_module(place), attr)
    if not isinstance(found, type) or not issubclass(found, AgentRunner):
        raise TypeError(f"{attr!r} in {place} must be a subclass of AgentRunner")
    return found


def _serve(load: Callable[[], type[AgentRunner]]) -> int:
    lines_in, lines_out = take_over_stdio()
    return asyncio.run(_play(load, lines_in, lines_out))


async def _play(load: Callable[[], type[AgentRunner]], lines_in: FileIO, lines_out: FileIO) -> int:
    output = LineOutput(lines_out)
    await output.open()
    try:
        return await _Program(output).play(load, lines_in)
    finally:
        await output.close()


class _Program:
    """One run: the host on one side, the runner's generator on the other."""

    def __init__(self, output: LineOutput) -> None:
        self._output = output
        self._connection = StdioConnection(output)
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[JsonObject] = self._loop.create_future()
        self._yielding: asyncio.Task[None] | None = None
        self._stop_reason: str | None = None
        self._last_sequence = 0

    async def play(self, load: Callable[[], type[AgentRunner]], lines_in: FileIO) -> int:
        """Wait for the run, load the runner, run it to its end; returns the exit status."""
        self._loop.add_signal_handler(signal.SIGTERM, self._stop, "SIGTERM")
        reading = Thread(target=self._read, args=(lines_in,), name="host-lines", daemon=True)
        reading.start()
        message = await self._first
        runner = load()()
        runner.manifest = AgentRunnerManifest.model_validate(message["manifest"], extra="ignore")
        context = AgentRunContext.model_validate(message["context"])
        with connected(self._connection):
            self._yielding = asyncio.create_task(self._yield_results(_start(runner, context)))
        if self._stop_reason is not None:
            self._yielding.cancel(self._stop_reason)
        await asyncio.wait([self._yielding])
        if self._yielding.cancelled():
            return EXIT_CANCELLED
        error = self._yielding.exception()
        if error is not None:
            traceback.print_exception(error)
            return _EXIT_CRASHED
        return 0

    def _read(self, lines_in: FileIO) -> None:
        read_lines(
            lines_in,
            lambda message: self._loop.call_soon_threadsafe(self._take, message),
            lambda: self._loop.call_soon_threadsafe(self._stop, "the host has closed its end"),
        )

    def _take(self, message: JsonObject) -> None:
        match message.get("type"):
            case "run" if not self._first.done():
                self._first.set_result(message)
            case "answer" | "item" | "end":
                self._connection.take(message)
            case "cancel":
                self._stop(str(message.get("reason")))
            case _:
                # A newer host may have more to say than this program has to know.
                pass

    def _stop(self, reason: str) -> None:
        if self._stop_reason is not None:
            return
        self._stop_reason = reason
        if not self._first.done():
            self._first.cancel(reason)
        if self._yielding is not None:
            self._yielding.cancel(reason)

    async def _yield_results(self, results: AsyncGenerator[object, None]) -> None:
        """Write what the generator yields. A cancellation reaches it where it awaits, or at its `yield`."""
        step: Coroutine[Any, Any, object] = results.__anext__()
        while True:
            try:
                result = await step
            except StopAsyncIteration:
                return
            except SystemExit as exit_:
                # It would end the program with a status of the runner's choice, and 0 would pass for a good end.
                raise RuntimeError("the runner called sys.exit()") from exit_
            self._write(result)
            try:
                await self._output.drained()
                # A turn of the loop, in which a runner that never awaits can hear of a cancel.
                await asyncio.sleep(0)
            except asyncio.CancelledError as cancelled:
                step = results.athrow(cancelled)
            else:
                step = results.__anext__()

    def _write(self, result: object) -> None:
        line, is_numbered = encode_result(result, self._last_sequence + 1)
        self._output.send(line)
        if is_numbered:
            self._last_sequence += 1
        elif isinstance(result, AgentRunResult) and result.sequence is not None:
            self._last_sequence = max(self._last_sequence, result.sequence)


def _start(runner: AgentRunner, context: AgentRunContext) -> AsyncGenerator[object, None]:
    results: object = runner.run(context)
    if inspect.isasyncgen(results):
        return results
    if inspect.iscoroutine(results):
        results.close()
    raise TypeError(
        "run() must be an async generator (`async def run(self, ctx)` with `yield`), "
        f"not return {type(results).__name__}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
