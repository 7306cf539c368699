"""What a case came to."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Result of a case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a case, with its reason.

    Attributes:
        outcome: The result.
        seen: What was seen; for a case that does not apply, why it does not.
        advice: What the author can do about a failure.
        scenario: Where it was seen.
    """

    outcome: Outcome
    seen: str = ""
    advice: str = ""
    scenario: str | None = None


def passed(seen: str = "") -> Verdict:
    """The runner does what the case asks for."""
    return Verdict(Outcome.PASSED, seen)


def passed_in(runs: int) -> Verdict:
    """The runner does what the case asks for, in so many runs."""
    return passed("in one run" if runs == 1 else f"in {runs} runs")


def failed(seen: str, advice: str, *, scenario: str) -> Verdict:
    """The runner does something else."""
    return Verdict(Outcome.FAILED, seen, advice, scenario)


def not_applicable(reason: str) -> Verdict:
    """The case asks for nothing that this runner does."""
    return Verdict(Outcome.NOT_APPLICABLE, reason)
