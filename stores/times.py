"""Epoch seconds, as Protocol v1 speaks, and times with a zone, as the tables do."""

from datetime import UTC, datetime


def from_epoch(seconds: float | None) -> datetime | None:
    """Return the UTC time of ``seconds`` since 1970."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def to_epoch(time: datetime | None) -> int | None:
    """Return whole seconds since 1970."""
    return None if time is None else int(time.timestamp())
