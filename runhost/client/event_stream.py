"""Reads `text/event-stream`: bytes in, events out, wherever the network cuts them."""

from dataclasses import dataclass
from typing import Final

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024
"""A ledger row holds at most 2 MiB, which escapes in JSON make at most twelve times as long."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """An event, or a line without an end, exceeds 32 MiB."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event.

    Attributes:
        id: The latest id that the stream gave, "" before the first; where to resume.
        event: Its type.
        data: Its lines, joined by newlines.
    """

    id: str
    event: str
    data: str


class EventStreamParser:
    """Splits one connection's bytes into events by the rules of the HTML standard.

    Lines end in LF, CRLF or CR; an event that the end of the stream cuts off does not count.

    Attributes:
        retry_seconds: What the stream asks readers to wait before they come back; None until it does.
    """

    def __init__(self) -> None:
        self.retry_seconds: float | None = None
        self._rest = bytearray()
        self._at_start = True
        self._after_cr = False
        self._id = ""
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[StreamEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            EventTooLong: Memory is not for the other side to fill.
        """
        if not piece:
            return []
        if self._after_cr:
            piece = piece.removeprefix(b"\n")
        self._after_cr = piece.endswith(b"\r")
        # Looking through the rest again for each piece without a line's end would be quadratic.
        has_end = b"\n" in piece or b"\r" in piece
        self._rest += piece
        if not has_end:
            self._check_size(len(self._rest))
            return []
        lines = bytes(self._rest).splitlines()
        self._rest.clear()
        if not piece.endswith((b"\n", b"\r")):
            self._rest += lines.pop()
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> StreamEvent | None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._dispatch()
        # Whole lines only are decoded, so a character is never cut in two.
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._size += len(line)
                self._check_size(0)
                self._data.append(value)
            case "event":
                self._event = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdecimal():
                self.retry_seconds = int(value) / 1000
            case _:
                # A comment, which has no name, or a field of a later standard.
                pass
        return None

    def _dispatch(self) -> StreamEvent | None:
        event = StreamEvent(self._id, self._event or "message", "\n".join(self._data)) if self._data else None
        self._event, self._data, self._size = "", [], 0
        return event

    def _check_size(self, unread: int) -> None:
        if self._size + unread > MAX_EVENT_BYTES:
            raise EventTooLong(f"an event of the stream exceeds {MAX_EVENT_BYTES} bytes")
