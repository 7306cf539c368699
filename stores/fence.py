"""The fence of what a runner asks for between its results (INV-5)."""

from dataclasses import dataclass
from uuid import UUID

from stores.errors import StaleAttempt

LIVE_ATTEMPT = """fence AS (
    SELECT run_id, workspace_id, runner_id FROM agent_run
    WHERE run_id = $1 AND current_attempt = $2 AND attempt_outcome IS NULL AND status IN ('running', 'waiting')"""
"""The beginning of a part of a WITH clause: one row while the attempt is open, none after.

Takes `Fence.run_id` and `Fence.attempt`.
"""

READING_ATTEMPT = f"{LIVE_ATTEMPT}\n)"
"""The part for a read, which is refused as well when its attempt has ended."""

# Locked until the statement has committed: an attempt that is opened meanwhile waits for the write, or the write
# waits for it and then finds the fence passed.
OPEN_ATTEMPT = f"{LIVE_ATTEMPT}\n    FOR SHARE\n)"
"""The part for a write."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The attempt that reads or writes."""

    run_id: UUID
    attempt: int


def stale() -> StaleAttempt:
    """Return the error of an attempt whose fence has passed."""
    return StaleAttempt("The attempt has ended, or a later one has begun.")
