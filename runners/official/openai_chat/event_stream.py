"""Reads `text/event-stream`: bytes in, the data of each event out."""

from typing import Final

MAX_EVENT_BYTES: Final = 1024 * 1024
"""One event of a chat answer holds a few tokens; the longest ones carry whole tool calls."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """An event, or a line without an end, is over 1 MiB."""


class EventStreamReader:
    """Splits a stream into events by the rules of the HTML standard; keeps only `data`.

    Lines end in LF, CRLF or CR; comments and other fields are skipped. One liberty: an event that the end of
    the stream cuts off is not dropped, `finish` returns it.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._at_start = True
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Take the next bytes and return the data of the events that they complete.

        Raises:
            EventTooLong: memory is not for the endpoint to fill.
        """
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

    def finish(self) -> list[bytes]:
        """Return the data of an event that the end of the stream cut off, if any."""
        lines = [bytes(self._rest), b""]
        self._rest.clear()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if self._at_start:
                line = line.removeprefix(_BYTE_ORDER_MARK)
                self._at_start = False
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                self._data, self._size = [], 0
                continue
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._size += len(value)
                self._check_size(0)
        return events

    def _check_size(self, unread: int) -> None:
        if self._size + unread > MAX_EVENT_BYTES:
            raise EventTooLong
