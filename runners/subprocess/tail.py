"""The end of what a program writes to its standard error."""


class Tail:
    """Counts bytes and keeps the last ones.

    Args:
        keep_bytes: how many to keep.
    """

    def __init__(self, keep_bytes: int) -> None:
        self.total_bytes = 0
        self._keep = keep_bytes
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take what comes next."""
        self.total_bytes += len(data)
        self._kept += data
        if len(self._kept) > 2 * self._keep:
            del self._kept[: -self._keep]

    def text(self) -> str:
        """Return what is kept; bytes that are no UTF-8 are replaced."""
        return bytes(self._kept[-self._keep :]).decode("utf-8", "replace").strip()
