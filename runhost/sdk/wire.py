"""The lines between a host and a runner that is a program of its own (docs/subprocess-runners.md).

Each line is one JSON object with a `type`. The host writes to the program's standard input, the program to its
standard output::

    host     run, answer, item, end, cancel
    program  result, call, abort
"""

import asyncio
import json
from typing import Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Longest line, its end included: a stored value of 10 MiB in base64 with the JSON around it (D-17)."""

READ_BYTES: Final = 65_536
"""What is asked of a pipe at a time, and what Linux lets one hold."""


class LineTooLong(ValueError):
    """A line exceeds the limit; `start` is how it begins, at most 200 bytes."""

    def __init__(self, limit: int, start: bytes) -> None:
        self.start = start[:200]
        super().__init__(f"a line is longer than {limit} bytes")


class LineSplitter:
    """Cuts what comes out of a pipe into lines.

    Args:
        limit: bytes that one line may have.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that they complete, without their ends; blank ones are left out.

        Raises:
            LineTooLong: A line exceeds the limit. Nothing can be read after it.
        """
        first, *others = data.split(b"\n")
        self._parts.append(first)
        self._held += len(first)
        if self._held >= self._limit or any(len(line) >= self._limit for line in others):
            raise LineTooLong(self._limit, b"".join(self._parts))
        if not others:
            return []
        lines = [self.rest(), *others[:-1]]
        self._parts, self._held = [others[-1]], len(others[-1])
        return [line for line in lines if line and not line.isspace()]

    def rest(self) -> bytes:
        """Return what has come of a line that is not complete."""
        return b"".join(self._parts)


def encode_line(message: object) -> bytes:
    r"""Write a message as a line.

    All of it is ASCII: lone surrogates, which have no UTF-8, then pass as escapes (D-31), and nobody takes U+2028
    for the end of a line.

    Raises:
        TypeError, ValueError, RecursionError: It holds something that is no JSON.
    """
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


class LineWriter(asyncio.Protocol):
    """Writes lines to a pipe; the protocol of `loop.connect_write_pipe`.

    Attributes:
        closed: set when the pipe is closed, by us or because nobody reads it any more.
    """

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; called by the event loop, like the next three."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let them go on."""
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what comes from now on."""
        self._transport = None
        self._room.set()
        self.closed.set()

    def send(self, line: bytes) -> None:
        """Write a line behind those before it; lost without a word when nobody reads the pipe."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(line)

    async def drained(self) -> None:
        """Wait while too much is on its way."""
        await self._room.wait()

    def close(self) -> None:
        """Close the pipe once what was written is gone."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the pipe at once."""
        if self._transport is not None:
            self._transport.abort()
