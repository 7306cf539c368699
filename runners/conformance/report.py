"""The report of a verification, as it is written to JSON."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from runhost.protocol import JsonObject, LenientModel
from runners.conformance.verdict import Outcome


class CaseReport(LenientModel):
    """What one case came to.

    Attributes:
        id: The case.
        title: What a runner does that passes it.
        sources: Rules that say so.
        outcome: `passed`, `failed` or `not_applicable`.
        seen: What was seen, or why the case does not apply.
        advice: What to do about a failure.
        scenario: Where a failure was seen.
    """

    id: str
    title: str
    sources: tuple[str, ...]
    outcome: Outcome
    seen: str = ""
    advice: str = ""
    scenario: str | None = None


class ScenarioReport(LenientModel):
    """What happened in one scenario: numbers that help to read the cases.

    Attributes:
        name: The scenario.
        seconds: How long it took.
        runs: How many runs it had.
        results: Results of all of them.
        calls: Calls of the host and of the kit's model endpoint.
        ends: Type of each run's end, or `crash`, `cut_off`, `stopped`, `none`.
    """

    name: str
    seconds: Annotated[float, Field(ge=0)]
    runs: int
    results: int
    calls: int
    ends: tuple[str, ...]


class Report(LenientModel):
    """A whole verification.

    Attributes:
        format: Changes when a field changes its meaning.
        runner_id: The runner.
        plugin_version: Its version, if it has one.
        started_at: When, in UTC.
        seconds: How long it took.
        is_passed: Whether no case failed.
        counts: Cases by outcome.
        cases: In the order of the catalogue.
        scenarios: In the order in which they were played.
    """

    format: Literal["runhost.conformance.v1"] = "runhost.conformance.v1"
    runner_id: str
    plugin_version: str | None
    started_at: datetime
    seconds: Annotated[float, Field(ge=0)]
    is_passed: bool
    counts: dict[Outcome, int]
    cases: tuple[CaseReport, ...]
    scenarios: tuple[ScenarioReport, ...]

    def document(self) -> JsonObject:
        """Return the report as a JSON object."""
        return self.model_dump(mode="json")
