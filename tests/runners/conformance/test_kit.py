"""The kit itself: what it plays, when it stops, and what it reports."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from runhost.protocol import AgentRunContext
from runhost.sdk import AgentRunner, results
from runners.conformance import CASES, Limits, Report, UnknownCase, select, verify
from runners.conformance.scenario import Scenario
from runners.in_process import InProcessTransport
from runners.registry import RunnerRegistry
from tests.eventually import eventually
from tests.runners.bad_runners import BlockedInCall, Crash, Endless, PoliteSleeper, StubbornBusyLoop
from tests.runners.conformance.misbehaving import Good, LeavesAThread
from tests.runners.conformance.targets import LIMITS, ends, failures, outcomes, target_of

SHORT = replace(LIMITS, run_seconds=0.3)


class Toolbox(AgentRunner):
    """Completes a tool call that it did not start."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield results.tool_completed(ctx, "call-1", "tool", result={})
        yield results.completed(ctx, message="done")


class EndsTwice(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield results.completed(ctx, message="done")
        yield results.failed(ctx, "runner.error", "on second thought")


class PretendsToBeTheHost(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield {"run_id": ctx.run_id, "type": "host.run_ended", "data": {"status": "completed"}}
        yield {"run_id": ctx.run_id, "type": "acme.progress", "data": {"percent": 90}}
        yield results.completed(ctx, message="done")


class KeepsTooMuch(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield results.state(ctx, "actor", "key", "x" * 262_144)
        yield results.completed(ctx)


class Rubbish(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield 42
        yield {"run_id": ctx.run_id, "type": "message.completed", "data": {"message": {"n": float("nan")}}}
        yield results.completed(ctx, message="done")


class BadBase64(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        data = {"artifact_type": "file", "content_base64": "?"}
        yield {"run_id": ctx.run_id, "type": "artifact.created", "data": data}
        yield results.completed(ctx, message="done")


def test_cases_have_ids_of_their_own_and_name_their_rules() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert all(case.title and case.sources and case.scenarios for case in CASES)


def test_scenarios_of_one_name_are_the_same() -> None:
    by_name: dict[str, Scenario] = {}
    for case in CASES:
        for scenario in case.scenarios:
            assert by_name.setdefault(scenario.name, scenario) == scenario


def test_cases_are_selected_in_their_own_order() -> None:
    assert [case.id for case in select(["cancel", "answer"])] == ["answer", "cancel"]
    assert select() == CASES


def test_unknown_case_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UnknownCase, match=r"'cancle'; there are: answer, .*, cancel,"):
        select(["cancle"])


async def test_each_scenario_is_played_once_and_told_before() -> None:
    told: list[tuple[str, int, int]] = []
    cases = select(["answer", "order", "long_output"])
    report = await verify(
        target_of(Good), cases, limits=LIMITS, progress=lambda scenario, *count: told.append((scenario.name, *count))
    )
    assert told == [("plain", 0, 3), ("long_input", 1, 3), ("long_answer", 2, 3)]
    assert [scenario.name for scenario in report.scenarios] == ["plain", "long_input", "long_answer"]


async def test_report_reads_back_from_its_json() -> None:
    report = await verify(target_of(Good), select(["answer", "usage"]), limits=LIMITS)
    text = json.dumps(report.document())
    assert Report.model_validate_json(text) == report
    assert report.counts == {"passed": 2, "failed": 0, "not_applicable": 0}
    assert ends(report) == {"plain": ("run.completed",), "without_usage": ("run.completed",)}


async def test_crash_fails_the_answer_and_names_the_line() -> None:
    report = await verify(target_of(Crash), select(["answer", "order", "leftovers"]), limits=LIMITS)
    assert "ValueError: the secret is out (at " in failures(report)["answer"]
    # It yielded no result, and ended by an exception: the order of results is not what is wrong with it.
    assert outcomes(report) == {"answer": "failed", "order": "passed", "leftovers": "passed"}
    assert ends(report) == {"plain": ("crash",)}


async def test_runner_that_breaks_before_it_is_stopped_fails() -> None:
    report = await verify(target_of(Crash), select(["cancel", "deadline"]), limits=LIMITS)
    assert outcomes(report) == {"cancel": "failed", "deadline": "failed"}


@pytest.mark.parametrize("runner", [Endless, PoliteSleeper, StubbornBusyLoop], ids=lambda runner: runner.__name__)
async def test_runner_that_never_ends_is_cut_off(runner: type[AgentRunner]) -> None:
    report = await verify(target_of(runner), select(["answer"]), limits=SHORT)
    assert "cut off" in failures(report)["answer"]


async def test_runner_that_blocks_is_named_with_its_line() -> None:
    target = target_of(BlockedInCall, {"seconds": 3.0})
    report = await verify(target, select(["answer"]), limits=LIMITS)
    assert "blocked its event loop" in failures(report)["answer"]


async def test_runner_that_is_not_there_fails() -> None:
    target = replace(target_of(Good), transport=InProcessTransport(RunnerRegistry(list)))
    report = await verify(target, select(["answer"]), limits=LIMITS)
    assert "no runner 'plugin:test/runners/Good'" in failures(report)["answer"]


@pytest.mark.parametrize(
    ("runner", "case", "seen"),
    [
        (Toolbox, "order", "tool.call.completed without a tool.call.started"),
        (EndsTwice, "order", "run.failed after run.completed"),
        (PretendsToBeTheHost, "unknown_type", "'host.run_ended'"),
        (KeepsTooMuch, "long_output", "a state value of 262146 bytes"),
        (Rubbish, "envelope", "not int"),
        (Rubbish, "payload", "message.completed: data.message.n: Number must be finite"),
        (BadBase64, "payload", "artifact.created: data.content_base64: no valid base64"),
    ],
    ids=["tool call", "two ends", "host type", "state value", "no result", "NaN", "base64"],
)
async def test_fault_is_named(runner: type[AgentRunner], case: str, seen: str) -> None:
    report = await verify(target_of(runner), select([case]), limits=LIMITS)
    assert seen in failures(report)[case]


async def test_what_is_not_begun_in_the_total_time_fails() -> None:
    report = await verify(target_of(Good), select(["answer", "cancel"]), limits=replace(LIMITS, total_seconds=0))
    assert report.scenarios == ()
    assert set(outcomes(report).values()) == {"failed"}
    assert "not tried: the 0 s" in failures(report)["answer"]


async def test_cancelled_verification_stops_the_runner() -> None:
    PoliteSleeper.events.clear()
    verifying = asyncio.create_task(verify(target_of(PoliteSleeper), select(["answer"]), limits=Limits()))
    await eventually(lambda: "resumed" in PoliteSleeper.events)
    verifying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await verifying
    assert PoliteSleeper.events[-1] == "cleaned up"


async def test_what_is_left_of_a_run_is_named() -> None:
    LeavesAThread.released.clear()
    try:
        report = await verify(target_of(LeavesAThread), select(["leftovers"]), limits=LIMITS)
    finally:
        LeavesAThread.released.set()
    assert failures(report)["leftovers"].startswith("plain: blocking_calls: ")


async def test_runs_of_a_scenario_are_counted_together() -> None:
    report = await verify(target_of(Good), select(["together"]), limits=LIMITS)
    (scenario,) = report.scenarios
    assert (scenario.runs, scenario.calls) == (4, 4)
