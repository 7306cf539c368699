"""What a program writes to its standard output: results for the inbox, and host calls."""

import json
from asyncio import StreamReader
from typing import Final, cast

from runhost.protocol import JsonObject, ResultType
from runhost.sdk.wire import READ_BYTES, LineSplitter, LineTooLong
from runners.errors import ProtocolBroken
from runners.subprocess.calls import HostCalls
from runners.subprocess.inbox import Inbox

_LAST_TYPES: Final = frozenset({ResultType.RUN_COMPLETED.value, ResultType.RUN_FAILED.value})


class ProgramOutput:
    """Takes the messages of one program.

    Args:
        inbox: takes the results.
        calls: makes the calls.
        line_bytes: longest line.

    Attributes:
        has_ended: a last result has come.
    """

    def __init__(self, inbox: Inbox, calls: HostCalls, line_bytes: int) -> None:
        self.has_ended = False
        self._inbox = inbox
        self._calls = calls
        self._splitter = LineSplitter(line_bytes)

    async def read(self, stream: StreamReader) -> None:
        """Take what comes up to the first fault or the end.

        Raises:
            ProtocolBroken: the program wrote what is no message. Only `drop` makes sense after it.
        """
        while data := await stream.read(READ_BYTES):
            try:
                for line in self._splitter.feed(data):
                    await self._take(line)
            except LineTooLong as error:
                raise ProtocolBroken(str(error), error.start) from None

    async def drop(self, stream: StreamReader) -> None:
        """Read to the end and take nothing, so that a program that is not listened to can go on and end."""
        while await stream.read(READ_BYTES):
            pass

    def unfinished_line(self) -> bytes:
        """Return what came of a last line without its end."""
        return self._splitter.rest()

    async def _take(self, line: bytes) -> None:
        message = _parse(line)
        kind = message.get("type")
        if kind == "result":
            if "result" not in message:
                raise ProtocolBroken("a result message without a result", line)
            result = cast("object", message["result"])
            self.has_ended = self.has_ended or _is_last(result)
            self._inbox.put(result, len(line))
            await self._inbox.room()
        elif kind == "call":
            self._calls.start(message, line)
            await self._calls.room()
        elif kind == "abort":
            self._calls.abort(message.get("id"))
        else:
            raise ProtocolBroken("a message of a type that there is not", line)


def _parse(line: bytes) -> JsonObject:
    try:
        # Lone surrogates may stand as they are, as in escapes (D-31).
        message = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise ProtocolBroken("a line that is no JSON", line) from None
    if not isinstance(message, dict):
        raise ProtocolBroken("a line that is no JSON object", line)
    return message


def _is_last(result: object) -> bool:
    kind = result.get("type") if isinstance(result, dict) else None
    return isinstance(kind, str) and kind in _LAST_TYPES
