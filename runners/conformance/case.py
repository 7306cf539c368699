"""A case: what a runner is put through, and how that is judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runners.conformance.record import RunRecord
from runners.conformance.scenario import Scenario
from runners.conformance.target import Target
from runners.conformance.verdict import Verdict

Judge = Callable[[Target, Sequence[RunRecord]], Verdict]


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that a runner has to do.

    Attributes:
        id: Name to choose it by; permanent.
        title: What the runner does if it passes.
        sources: Rules that say so.
        scenarios: What the runner is put through for it.
        judge: Judges the runs of those scenarios.
        sees_all_runs: The judge gets the runs of all other cases too.
    """

    id: str
    title: str
    sources: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    judge: Judge
    sees_all_runs: bool = False
