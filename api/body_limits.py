"""How large a body may be, by where it is sent."""

from collections.abc import Mapping


class BodyLimits:
    """Limits of bodies.

    Args:
        default_bytes: Largest body, unless a prefix says otherwise.
        by_prefix: Largest body for paths that begin with a prefix; of several prefixes the longest counts.
    """

    def __init__(self, default_bytes: int, by_prefix: Mapping[str, int]) -> None:
        self._default_bytes = default_bytes
        self._by_prefix = sorted(by_prefix.items(), key=lambda item: len(item[0]), reverse=True)

    def of(self, path: str) -> int:
        """Return the most bytes that a body to ``path`` may have."""
        for prefix, limit in self._by_prefix:
            if path.startswith(prefix):
                return limit
        return self._default_bytes
