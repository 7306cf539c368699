"""Every case of the kit is failed by the runner that breaks it, and by no other."""

from collections.abc import Iterator

import pytest

from runners.conformance import CASES, Case, verify
from tests.runners.conformance.misbehaving import BAD_RUNNERS, Good, LeavesAThread, Numbering
from tests.runners.conformance.targets import LIMITS, failures, outcomes, target_of

CONFIG = {"greeting": "Hello"}


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    LeavesAThread.released.clear()
    yield
    LeavesAThread.released.set()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_bad_runner_fails_just_the_case_that_it_breaks(case: Case) -> None:
    """Reads the cases from the kit: one that nobody breaks yet fails here."""
    report = await verify(target_of(BAD_RUNNERS[case.id], {**CONFIG}), limits=LIMITS)
    assert list(failures(report)) == [case.id], failures(report)
    assert not report.is_passed
    (failed,) = (its_report for its_report in report.cases if its_report.outcome == "failed")
    assert failed.seen
    assert failed.advice
    assert failed.scenario in {scenario.name for scenario in report.scenarios}


def test_no_bad_runner_is_without_a_case() -> None:
    assert set(BAD_RUNNERS) == {case.id for case in CASES}


async def test_good_runner_fails_nothing() -> None:
    report = await verify(target_of(Good), limits=LIMITS)
    assert failures(report) == {}
    assert report.is_passed
    skipped = {case for case, outcome in outcomes(report).items() if outcome == "not_applicable"}
    assert skipped == {"duplicate_sequence", "missing_sequence"}


async def test_numbers_are_judged_where_there_are_some() -> None:
    """P-S3, P-S4."""
    report = await verify(target_of(Numbering), limits=LIMITS)
    assert {outcomes(report)[case] for case in ("duplicate_sequence", "missing_sequence")} == {"passed"}
