"""Ids in paths."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path

from stores.errors import RunNotFound


async def _run_id(run_id: Annotated[str, Path(description="Id of the run, a UUID.")]) -> UUID:
    """Read the id of a run. What is no UUID names no run, and is answered like one that does not exist."""
    try:
        found = UUID(run_id)
    except ValueError:
        found = None
    if found is None or str(found) != run_id.lower():
        raise RunNotFound(f"There is no run {run_id[:255]!r} in this workspace.")
    return found


RunId = Annotated[UUID, Depends(_run_id)]
