"""Cases about the host: how a runner calls it, takes its refusals, and lets itself be stopped."""

from collections.abc import Sequence
from typing import Final

from runhost.protocol import ResultType, RunFailureCode
from runners.conformance.case import Case
from runners.conformance.record import RunRecord
from runners.conformance.scenario import CANCELLED, DEADLINE, PLAIN, REFUSALS
from runners.conformance.target import Target
from runners.conformance.verdict import Verdict, failed, not_applicable, passed, passed_in

MAX_REFUSED_CALLS: Final = 100
"""Calls that a runner may try although every one is refused."""

_STOP_ADVICE: Final = (
    "Await everywhere, let asyncio.CancelledError pass or catch it, yield results.cancelled and return."
)


def _judge_calls(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask that calls are valid, and for what was granted (PM-1 to PM-3, P-E6)."""
    for record in records:
        if record.host.faults:
            advice = "Call methods of PROTOCOL 9 through the proxy, for what ctx.resources and available_apis list."
            return failed(record.host.faults[0], advice, scenario=record.scenario.name)
    calls = sum(record.host.calls for record in records)
    return passed(f"{calls} calls") if calls else not_applicable("the runner called nothing of the host")


def _judge_refusals(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask that refused runs end, and soon (PROTOCOL 10)."""
    if not any(record.calls for record in records):
        return not_applicable("the runner called neither the host nor a model endpoint of the kit")
    for record in records:
        advice = "Catch AgentAPIException, give up after a few tries, and end with results.failed."
        if (fault := record.uncontrolled_end) is not None:
            return failed(fault, advice, scenario=record.scenario.name)
        if record.calls > MAX_REFUSED_CALLS:
            return failed(f"{record.calls} calls, all of them refused", advice, scenario=record.scenario.name)
    return passed_in(len(records))


def _judge_cancel(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask that a runner ends when it is told to (P-T2, P-T4)."""
    (record,) = records
    is_success = record.end is not None and record.end.type == ResultType.RUN_COMPLETED
    if record.crash is None and (not record.was_at_work or is_success):
        return not_applicable("the runner was done before it could be told to stop; give it longer work with --config")
    if (fault := _unstoppable(record)) is not None:
        return failed(fault, _STOP_ADVICE, scenario=CANCELLED.name)
    code = None if record.failure is None else record.failure.code
    if code == RunFailureCode.CANCELLED:
        return passed("ended with run.failed, code 'cancelled'")
    if code is not None:
        return failed(f"told to stop, it ended with code {code!r}", _STOP_ADVICE, scenario=CANCELLED.name)
    return passed("ended without a word, so that the host writes the end")


def _judge_deadline(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask that a runner ends by its deadline, or when it is stopped then (P-T1, P-T6)."""
    (record,) = records
    if (fault := _unstoppable(record)) is not None:
        advice = "Bound what you wait for by ctx.runtime.deadline_at. " + _STOP_ADVICE
        return failed(fault, advice, scenario=DEADLINE.name)
    return passed("ended when it was stopped" if record.was_at_work else "ended by itself")


def _judge_leftovers(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask that nothing of an ended run goes on (P-T5); runs that were stopped have cases of their own."""
    for record in records:
        if record.residual is not None and record.end is not None and record.stop_seconds is None:
            advice = "Await or cancel everything that was started before the run ends."
            return failed(f"{record.residual.kind}: {record.residual.detail}", advice, scenario=record.scenario.name)
    return passed_in(len(records))


def _unstoppable(record: RunRecord) -> str | None:
    if record.crash is not None:
        return f"the runner broke: {record.crash}"
    if record.residual is not None:
        return f"still there after it was ended by force: {record.residual.detail}"
    if record.was_forced:
        return f"told to stop, it went on for {record.stop_seconds:.1f} s, until it was ended by force"
    return None


HOST_CASES: Final = (
    Case(
        "host_calls",
        "calls of the host are valid, and for what was granted",
        ("PM-1", "PM-2", "PM-3", "P-E6"),
        (PLAIN,),
        _judge_calls,
        sees_all_runs=True,
    ),
    Case("refused_calls", "refused calls end the run in order", ("PROTOCOL 10", "LA-07"), REFUSALS, _judge_refusals),
    Case("cancel", "told to stop, it ends in time", ("P-T2", "P-T4"), (CANCELLED,), _judge_cancel),
    Case("deadline", "it ends by its deadline", ("P-T1", "P-T6"), (DEADLINE,), _judge_deadline),
    Case("leftovers", "nothing of an ended run goes on", ("P-T5",), (PLAIN,), _judge_leftovers, sees_all_runs=True),
)
