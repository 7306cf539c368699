"""The Range header (RFC 9110, 14.2), for one range of bytes."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"\s*bytes\s*=\s*([0-9]{0,18})-([0-9]{0,18})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ByteRange:
    """Bytes from ``start`` to before ``end``."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many bytes."""
        return self.end - self.start


class Unsatisfiable(ValueError):
    """No byte of the content lies in the range."""


def requested_range(header: str | None, size: int) -> ByteRange | None:
    """Return the range that a header asks for of ``size`` bytes.

    None where it asks for everything: without the header, or with one that is malformed or names several
    ranges, which a server may ignore.

    Raises:
        Unsatisfiable: It asks for bytes that are not there.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= size or start >= end:
        raise Unsatisfiable
    return ByteRange(start, end)
