"""A tool server as a program: one JSON-RPC message a line on its standard streams.

The transport of the `mcp` package lets lines grow without end, reads nothing of standard error and leaves alone
what a server that ends by itself has started. Ours bounds, reads and ends all of it.
"""

import asyncio
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from mcp_types.jsonrpc import ErrorData

from providers.errors import ProviderError
from providers.mcp.failures import INVALID_ANSWER, TOO_LARGE

MAX_LINE_BYTES: Final = 12 * 1024 * 1024
"""An answer of 10 MiB and what JSON adds to it."""

MAX_STDERR_BYTES: Final = 4096
READ_BYTES: Final = 64 * 1024

EXIT_SECONDS: Final = 2.0
"""How long a server has to end once its standard input is closed, and once more after SIGTERM."""

DRAIN_SECONDS: Final = 0.5
"""How long to read what a server that has ended said last."""

WATCH_SECONDS: Final = 0.2
"""How soon it is noticed that a server has ended without closing its output."""

_POLL_SECONDS: Final = 0.01

# How servers begin an answer. Only at its very beginning: further on it could be a tool's text.
_ANSWER_ID: Final = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,')
_ID_BYTES: Final = 100

_log = structlog.get_logger(__name__)


class ServerProcess:
    """A running server.

    Attributes:
        ended: Set once it says nothing more.
    """

    def __init__(self, process: Process) -> None:
        self.ended = asyncio.Event()
        self._process = process
        self._stdin = cast("asyncio.StreamWriter", process.stdin)
        self._stdout = cast("asyncio.StreamReader", process.stdout)
        self._stderr = cast("asyncio.StreamReader", process.stderr)
        self._said = bytearray()

    @property
    def is_gone(self) -> bool:
        """Whether it says nothing more, or has just ended."""
        return self.ended.is_set() or self._process.returncode is not None

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group as well."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The last line of its standard error."""
        lines = self._said.decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")

    async def read(self, inbox: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand on what it says until it ends."""
        lines = _LineReader()
        try:
            while piece := await self._stdout.read(READ_BYTES):
                for message in lines.feed(piece):
                    # Nobody may listen any more; it is read all the same, so that it can end.
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await inbox.send(SessionMessage(message))
        finally:
            self._hang_up(inbox)

    async def watch(self, inbox: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """See it end, although what it started may hold its output open."""
        # Not `wait`: it waits for the ends of the pipes as well.
        while self._process.returncode is None:  # noqa: ASYNC110 - asyncio tells nobody else when a process ends
            await asyncio.sleep(WATCH_SECONDS)
        await asyncio.sleep(DRAIN_SECONDS)
        self._hang_up(inbox)

    def _hang_up(self, inbox: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Have everybody know that no answer comes any more."""
        self.ended.set()
        inbox.close()

    async def read_errors(self) -> None:
        """Read standard error, so that the server never waits for it, and keep the end of it."""
        while piece := await self._stderr.read(READ_BYTES):
            self._said += piece
            del self._said[:-MAX_STDERR_BYTES]

    async def write(
        self,
        outbox: MemoryObjectReceiveStream[SessionMessage],
        inbox: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Write what it is told."""
        try:
            async with outbox:
                async for told in outbox:
                    line = told.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._stdin.write(line.encode() + b"\n")
                    await self._stdin.drain()
        except ConnectionError:
            self._hang_up(inbox)

    async def stop(self) -> None:
        """End it and all that it started: by closing its input, then SIGTERM, then SIGKILL. Returns in 5 s."""
        self._stdin.close()
        await self._wait_for_leader(EXIT_SECONDS)
        if _signal_group(self.pid, signal.SIGTERM):
            await _until(lambda: not _signal_group(self.pid, 0), EXIT_SECONDS)
            _signal_group(self.pid, signal.SIGKILL)
        await self._wait_for_leader(EXIT_SECONDS)

    def release(self) -> None:
        """Close the pipes; whoever left the group may hold their other ends open for ever."""
        transport: Any = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _wait_for_leader(self, seconds: float) -> None:
        # Not `wait`: it also waits for the ends of the pipes, which the server's children may hold.
        await _until(lambda: self._process.returncode is not None, seconds)


@asynccontextmanager
async def stdio_server(
    command: Sequence[str], env: Mapping[str, str]
) -> AsyncGenerator[
    tuple[ServerProcess, MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]],
    None,
]:
    """Run a server inside a block, in a process group of its own; no process of the group is left after it.

    Raises:
        ProviderError: It cannot be started.
    """
    try:
        started = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=dict(env), cwd="/", start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ProviderError(f"The tool server's program cannot be started ({type(error).__name__}).") from None
    process = ServerProcess(started)
    inbox, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    told, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    work = (process.read(inbox), process.read_errors(), process.write(outbox, inbox), process.watch(inbox))
    tasks = [asyncio.create_task(part) for part in work]
    try:
        yield process, heard, told
    finally:
        # The reader goes on: a server that is stuck writing would not see that its input is closed.
        heard.close()
        told.close()
        await asyncio.shield(_wind_down(process, tasks))
        inbox.close()
        outbox.close()


async def _wind_down(process: ServerProcess, tasks: list[asyncio.Task[None]]) -> None:
    await process.stop()
    _, late = await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    process.release()


class _LineReader:
    """Splits standard output into messages; what is no message, or too long for one, is skipped."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._is_skipping = False

    def feed(self, piece: bytes) -> list[JSONRPCMessage]:
        """Take the next bytes and return the messages that they complete."""
        messages: list[JSONRPCMessage] = []
        self._rest += piece
        while (end := self._rest.find(b"\n", self._searched)) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            self._searched = 0
            if self._is_skipping:
                self._is_skipping = False
            elif line.strip() and (message := _read_line(line)) is not None:
                messages.append(message)
        self._searched = len(self._rest)
        if len(self._rest) > MAX_LINE_BYTES:
            if not self._is_skipping and (failure := _failure_of(bytes(self._rest[:_ID_BYTES]), TOO_LARGE)):
                messages.append(failure)
            self._is_skipping = True
            self._rest.clear()
            self._searched = 0
        return messages


def _read_line(line: bytes) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        _log.warning("tool_server.line.skipped", size_bytes=len(line))
        return _failure_of(line[:_ID_BYTES], INVALID_ANSWER)


def _failure_of(beginning: bytes, error: ErrorData) -> JSONRPCMessage | None:
    """Answer in the server's place, so that nobody waits for what cannot be read; None for no answer."""
    found = _ANSWER_ID.match(beginning)
    return JSONRPCError(jsonrpc="2.0", id=int(found.group(1)), error=error) if found else None


def _signal_group(group: int, number: int) -> bool:
    """Signal a process group, with 0 only to look; False where nobody is left of it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _until(is_over: Callable[[], bool], seconds: float) -> None:
    """Wait for something that tells nobody when it happens."""
    for _ in range(int(seconds / _POLL_SECONDS)):
        if is_over():
            return
        await asyncio.sleep(_POLL_SECONDS)
