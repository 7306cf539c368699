"""Reads `text/event-stream`: bytes in, events out, wherever the network cuts them."""

from dataclasses import dataclass
from typing import Final

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024
"""A ledger row holds at most 2 MiB, which escapes in JSON make at most twelve times as long."""

_MAX_RETRY_DIGITS: Final = 9
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """An event, or a line without an end, exceeds what the reader takes."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event.

    Attributes:
        id: The latest id that the stream gave, "" before the first; where to resume.
        event: Its type.
        raw: Its lines, joined by newlines, as they came.
    """

    id: str
    event: str
    raw: bytes

    @property
    def data(self) -> str:
        """The lines as text; bytes that are no UTF-8 become U+FFFD, as the standard says."""
        return self.raw.decode("utf-8", "replace")


class EventStreamParser:
    """Splits one connection's bytes into events by the rules of the HTML standard.

    Lines end in LF, CRLF or CR; an event that the end of the stream cuts off does not count, unless `finish`
    is called.

    Args:
        max_event_bytes: Most that one event may hold.

    Attributes:
        retry_seconds: What the stream asks readers to wait before they come back; None until it does.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.retry_seconds: float | None = None
        self._max_event_bytes = max_event_bytes
        self._rest = bytearray()
        self._at_start = True
        self._after_cr = False
        self._id = ""
        self._event = ""
        self._data: list[bytes] = []
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
        return self._events(lines)

    def finish(self) -> list[StreamEvent]:
        """Return the event that the end of the stream cut off, if any: a liberty for servers that need it.

        Raises:
            EventTooLong: As in `feed`.
        """
        lines = [bytes(self._rest), b""]
        self._rest.clear()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[StreamEvent]:
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> StreamEvent | None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._size += len(line)
                self._check_size(0)
                self._data.append(value)
            case b"event":
                self._event = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
                self.retry_seconds = int(value) / 1000
            case _:
                # A comment, which has no name, or a field of a later standard.
                pass
        return None

    def _dispatch(self) -> StreamEvent | None:
        event = StreamEvent(self._id, self._event or "message", b"\n".join(self._data)) if self._data else None
        self._event, self._data, self._size = "", [], 0
        return event

    def _check_size(self, unread: int) -> None:
        if self._size + unread > self._max_event_bytes:
            raise EventTooLong(f"an event of the stream exceeds {self._max_event_bytes} bytes")
