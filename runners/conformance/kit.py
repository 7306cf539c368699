"""Verifies a runner: plays the scenarios that cases ask for, each of them once, and judges."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from runners.conformance.behaviour_cases import BEHAVIOUR_CASES
from runners.conformance.case import Case
from runners.conformance.exercise import play
from runners.conformance.host_cases import HOST_CASES
from runners.conformance.record import RunRecord
from runners.conformance.report import CaseReport, Report, ScenarioReport
from runners.conformance.result_cases import RESULT_CASES
from runners.conformance.scenario import Scenario
from runners.conformance.target import Limits, Target
from runners.conformance.verdict import Outcome, Verdict, failed

CASES: Final[tuple[Case, ...]] = (*BEHAVIOUR_CASES, *RESULT_CASES, *HOST_CASES)
"""All cases, in the order of the report."""

Progress = Callable[[Scenario, int, int], None]
"""Told of each scenario before it is played: the scenario, how many were played, how many there are."""


class UnknownCase(ValueError):
    """No case has this id."""

    def __init__(self, case_id: str) -> None:
        super().__init__(f"there is no case {case_id!r}; there are: {', '.join(case.id for case in CASES)}")
        self.case_id = case_id


def select(case_ids: Sequence[str] = ()) -> tuple[Case, ...]:
    """Return the cases of these ids in the order of the catalogue; all of them for none.

    Raises:
        UnknownCase: one of the ids is no case's.
    """
    known = {case.id for case in CASES}
    for case_id in case_ids:
        if case_id not in known:
            raise UnknownCase(case_id)
    return tuple(case for case in CASES if not case_ids or case.id in case_ids)


async def verify(
    target: Target,
    cases: Sequence[Case] = CASES,
    *,
    limits: Limits | None = None,
    progress: Progress = lambda _scenario, _played, _all: None,
) -> Report:
    """Put a runner through cases and report.

    Scenarios are played one after another, so that what is measured of one is not the doing of another. Never
    takes longer than `limits.total_seconds` and one scenario. When it is cancelled, the runs under way are
    stopped first.

    Args:
        target: The runner, and how it is reached.
        cases: Which cases; see `select`.
        limits: How long to wait.
        progress: Told before each scenario.
    """
    limits = limits or Limits()
    started_at, begun = datetime.now(UTC), time.monotonic()
    scenarios = _scenarios_of(cases)
    played: dict[str, list[RunRecord]] = {}
    reports: list[ScenarioReport] = []
    for number, scenario in enumerate(scenarios):
        if time.monotonic() - begun >= limits.total_seconds:
            break
        progress(scenario, number, len(scenarios))
        scenario_begun = time.monotonic()
        played[scenario.name] = await play(target, scenario, limits)
        reports.append(_describe(scenario, played[scenario.name], time.monotonic() - scenario_begun))
    verdicts = {case.id: _judge(case, target, played, limits) for case in cases}
    outcomes = [verdict.outcome for verdict in verdicts.values()]
    return Report(
        runner_id=target.descriptor.id,
        plugin_version=target.descriptor.plugin_version,
        started_at=started_at,
        seconds=round(time.monotonic() - begun, 3),
        is_passed=Outcome.FAILED not in outcomes,
        counts={outcome: outcomes.count(outcome) for outcome in Outcome},
        cases=tuple(_report(case, verdicts[case.id]) for case in cases),
        scenarios=tuple(reports),
    )


def _scenarios_of(cases: Sequence[Case]) -> list[Scenario]:
    return list(dict.fromkeys(scenario for case in cases for scenario in case.scenarios))


def _judge(case: Case, target: Target, played: dict[str, list[RunRecord]], limits: Limits) -> Verdict:
    for scenario in case.scenarios:
        if scenario.name not in played:
            return failed(
                f"not tried: the {limits.total_seconds:g} s for the whole verification were over",
                "Choose fewer cases with --case, or find out above what took so long.",
                scenario=scenario.name,
            )
    names = played if case.sees_all_runs else [scenario.name for scenario in case.scenarios]
    return case.judge(target, [record for name in names for record in played[name]])


def _report(case: Case, verdict: Verdict) -> CaseReport:
    return CaseReport(
        id=case.id,
        title=case.title,
        sources=case.sources,
        outcome=verdict.outcome,
        seen=verdict.seen,
        advice=verdict.advice,
        scenario=verdict.scenario,
    )


def _describe(scenario: Scenario, records: Sequence[RunRecord], seconds: float) -> ScenarioReport:
    return ScenarioReport(
        name=scenario.name,
        seconds=round(seconds, 3),
        runs=len(records),
        results=sum(record.results for record in records),
        # The endpoint cannot tell the runs of a scenario apart.
        calls=sum(record.host.calls for record in records) + records[0].endpoint_calls,
        ends=tuple(_end_of(record) for record in records),
    )


def _end_of(record: RunRecord) -> str:
    if record.end is not None:
        return record.end.type
    if record.crash is not None:
        return "crash"
    if record.is_cut_off:
        return "cut_off"
    return "none" if record.stop_seconds is None else "stopped"
