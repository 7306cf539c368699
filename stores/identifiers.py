"""Ids that the host gives."""

from uuid import UUID

import uuid_utils


def new_uuid() -> UUID:
    """Return a UUIDv7: unique, and in order of time. Run ids rely on that (DESIGN 4)."""
    return UUID(int=uuid_utils.uuid7().int)
