"""How a run ends, from what its attempt said and what the workflow saw (DESIGN 6)."""

from activities.messages import Ended
from runhost.protocol import RunFailureCode, RunStatus
from stores.journal import AttemptEnd
from stores.runs import RunEnd

# For people, where nobody else said why.
_REASONS: dict[str, str] = {
    RunFailureCode.RUNNER_NOT_FOUND: "No worker offers this runner; see `runhost runners`.",
    RunFailureCode.RUNNER_LOST: "The worker that held the run was lost, and the attempts are used up.",
    RunFailureCode.RUNNER_TIMEOUT: "The deadline passed.",
    RunFailureCode.CANCELLED: "A cancel was asked for.",
    RunFailureCode.HOST_ERROR: "The host failed; its logs name the error.",
}


def settle(seen: Ended, own: AttemptEnd | None) -> tuple[RunEnd, AttemptEnd | None]:
    """Return the run's end, and the attempt's where the attempt could not write its own.

    What the attempt committed counts: a cancel or a lost worker after that came too late. Only a loss that
    Temporal may have retried, ``lost``, is no end of a run.
    """
    if own is not None and own.outcome != "lost":
        return _run_end(own), None
    reason = _REASONS.get(seen.code or "")
    end = AttemptEnd(seen.outcome, seen.code, reason, seen.retryable)
    return _run_end(end), end


def _run_end(end: AttemptEnd) -> RunEnd:
    return RunEnd(status=RunStatus(end.outcome), code=end.code, reason=end.reason)
