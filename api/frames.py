"""Ledger rows as frames of an event stream (API.md): encoded once, sent to many."""

import re
from collections.abc import Sequence

from api.encoding import Document, encode
from runhost.protocol import HostEventType

RETRY = b"retry: 2000\n\n"
PING = b": ping\n\n"

# A line break in the name would end the field, and the name of an unknown result type is the runner's.
_UNFIT_FOR_A_NAME = re.compile(r"[^\x20-\x7e]")


class Frames:
    """Consecutive rows of one run as the bytes that all their readers get.

    Args:
        rows: At least one, as `stores.ledger.read_document` gives them, in order of sequence.
    """

    __slots__ = ("_frames", "data", "first", "is_end", "last")

    def __init__(self, rows: Sequence[Document]) -> None:
        self._frames = [frame(row) for row in rows]
        self.data = b"".join(self._frames)
        self.first: int = rows[0]["sequence"]
        self.last: int = rows[-1]["sequence"]
        self.is_end = rows[-1]["type"] == HostEventType.RUN_ENDED

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._frames)

    def behind(self, position: int) -> bytes:
        """Return the bytes of the rows after ``position``, which lies before the last one."""
        if position < self.first:
            return self.data
        return b"".join(self._frames[position - self.first + 1 :])


def frame(row: Document) -> bytes:
    """Return one row as a frame; its data is the document that pages of the ledger hold."""
    name = _UNFIT_FOR_A_NAME.sub("?", row["type"])
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (row["sequence"], name.encode(), encode(row))
