"""The runner's end of the lines: standard input and output as a connection to the host."""

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from io import FileIO
from typing import cast

from runhost.protocol import AgentAPIError, AgentAPIException, AgentRunResult, JsonObject
from runhost.sdk.wire import READ_BYTES, LineSplitter, LineWriter, encode_line


def take_over_stdio() -> tuple[FileIO, FileIO]:
    """Take standard input and output for the lines, and give everybody else other ones.

    From now on what code prints goes to standard error, and who reads finds an empty input; so also programs that
    the runner starts.

    Returns:
        The host's lines, to read, and the program's lines, to write.
    """
    sys.stdout.flush()
    lines_in, lines_out = FileIO(os.dup(0), "rb"), FileIO(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # Not only its descriptor: what is printed must not wait in a buffer, which a killed program never empties.
    sys.stdout = sys.stderr
    return lines_in, lines_out


def read_lines(file: FileIO, take: Callable[[JsonObject], object], ended: Callable[[], object]) -> None:
    """Read the host's messages until it closes its end; blocking, so for a thread of its own.

    Lines that are no message are left out: the host writes none.
    """
    splitter = LineSplitter()
    while data := file.read(READ_BYTES):
        for line in splitter.feed(data):
            message = json.loads(line)
            if isinstance(message, dict):
                take(cast("JsonObject", message))
    ended()


class LineOutput:
    """Writes lines; without holding up the event loop where the other end is a pipe."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._pipe: LineWriter | None = None

    async def open(self) -> None:
        """Make ready; called once, before the first line."""
        mode = os.fstat(self._file.fileno()).st_mode
        # Files and terminals take what they are given at once, and must not be made non-blocking for others.
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            _, self._pipe = await asyncio.get_running_loop().connect_write_pipe(LineWriter, self._file)

    def send(self, line: bytes) -> None:
        """Write a line."""
        if self._pipe is not None:
            self._pipe.send(line)
        else:
            self._file.write(line)

    async def drained(self) -> None:
        """Wait while the host does not read."""
        if self._pipe is not None:
            await self._pipe.drained()

    async def close(self) -> None:
        """Wait until the host has everything, and close."""
        if self._pipe is not None:
            self._pipe.close()
            await self._pipe.closed.wait()
        self._file.close()


@dataclass(slots=True)
class _OpenCall:
    messages: asyncio.Queue[JsonObject] = field(default_factory=asyncio.Queue["JsonObject"])
    is_over: bool = False


class StdioConnection:
    """The host API over lines; a `HostConnection`."""

    def __init__(self, output: LineOutput) -> None:
        self._output = output
        self._last_id = 0
        self._open: dict[int, _OpenCall] = {}

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Call and wait for the answer."""
        call_id, call = self._start(method, params)
        try:
            return _result_of(await call.messages.get())
        finally:
            self._end(call_id)

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Call and yield what comes until the end."""
        call_id, call = self._start(method, params)
        try:
            while (message := await call.messages.get()).get("type") != "end":
                yield _result_of(message)
        finally:
            self._end(call_id)

    def take(self, message: JsonObject) -> None:
        """Take a message of the host that belongs to a call; one that was given up needs nothing."""
        call_id = message.get("id")
        call = self._open.get(call_id) if isinstance(call_id, int) else None
        if call is not None:
            call.messages.put_nowait(message)
            call.is_over = message.get("type") != "item"

    def _start(self, method: str, params: JsonObject) -> tuple[int, _OpenCall]:
        self._last_id += 1
        call = self._open[self._last_id] = _OpenCall()
        self._output.send(encode_line({"type": "call", "id": self._last_id, "method": method, "params": params}))
        return self._last_id, call

    def _end(self, call_id: int) -> None:
        if not self._open.pop(call_id).is_over:
            self._output.send(encode_line({"type": "abort", "id": call_id}))


def encode_result(result: object, sequence: int) -> tuple[bytes, bool]:
    """Write what a runner yielded as a line.

    The host judges it, as it judges what runners inside the worker yield; so whatever it is goes on its way.

    Args:
        result: what was yielded.
        sequence: number to give it if it has none (P-S9).

    Returns:
        The line, and whether it carries that number.
    """
    fields = _fields_of(result)
    is_numbered = fields is not None and "sequence" not in fields
    if fields is not None and is_numbered:
        fields = {**fields, "sequence": sequence}
    try:
        return encode_line({"type": "result", "result": result if fields is None else fields}), is_numbered
    except (TypeError, ValueError, RecursionError) as error:
        return encode_line({"type": "result", "result": f"what was yielded is no JSON: {error}"}), False


def _fields_of(result: object) -> dict[str, object] | None:
    if isinstance(result, AgentRunResult):
        usage = None if result.usage is None else result.usage.model_dump(exclude_unset=True)
        optional = {"sequence": result.sequence, "timestamp": result.timestamp, "usage": usage}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"run_id": result.run_id, "type": result.type, "data": result.data, **given}
    return cast("dict[str, object]", result) if isinstance(result, dict) else None


def _result_of(message: JsonObject) -> JsonObject:
    if "error" in message:
        # A newer host may say more than we know of.
        raise AgentAPIException(AgentAPIError.model_validate(message["error"], extra="ignore"))
    return cast("JsonObject", message.get("result"))
