"""What a run's deadline means for how its attempt ended (PROTOCOL P-T6)."""

from datetime import UTC, datetime
from typing import Final

from runhost.protocol import RunFailureCode, RunStatus
from stores.journal import AttemptEnd

DEADLINE_PASSED: Final = AttemptEnd(
    RunStatus.TIMEOUT.value, RunFailureCode.RUNNER_TIMEOUT.value, "The deadline passed.", retryable=True
)


def failed_in_time(end: AttemptEnd, deadline_at: datetime | None) -> AttemptEnd:
    """Return how an attempt ended that failed just now.

    A runner is told of the deadline by the call that it waits for, as soon as the host is by its clock, and either
    may be first. So whatever fails from the deadline on has failed for want of time; its row keeps its own words.
    """
    is_late = deadline_at is not None and datetime.now(UTC) >= deadline_at
    return DEADLINE_PASSED if is_late and end.outcome == RunStatus.FAILED else end
