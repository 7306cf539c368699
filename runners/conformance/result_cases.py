"""Cases about results. They are judged in every run that there is, so that no corner of a runner escapes them."""

from collections.abc import Sequence
from typing import Final

from runners.conformance.case import Case, Judge
from runners.conformance.record import RunRecord
from runners.conformance.rules import (
    DuplicateRule,
    EnvelopeRule,
    LateRule,
    MissingRule,
    OrderRule,
    PayloadRule,
    Rule,
    RunIdRule,
    SizeRule,
    StreamingRule,
    TypeRule,
    UsageRule,
)
from runners.conformance.scenario import LONG_ANSWER, LONG_INPUT, PLAIN, WITHOUT_USAGE, Scenario
from runners.conformance.target import Target
from runners.conformance.verdict import Verdict, failed, not_applicable, passed_in

_RESULTS_HELP: Final = "Build results with runhost.sdk.results, which checks them where they are made."


def _judge_by(rule: type[Rule], untried: str, advice: str) -> Judge:
    """Judge by the first run that breaks a rule."""

    def judge(_target: Target, records: Sequence[RunRecord]) -> Verdict:
        followed = [(record, record.rules[rule.id]) for record in records]
        for record, its_rule in followed:
            if its_rule.fault is not None:
                return failed(its_rule.fault, advice, scenario=record.scenario.name)
        tried = sum(its_rule.is_tried for _, its_rule in followed)
        return passed_in(tried) if tried else not_applicable(untried)

    return judge


def _judge_long_output(target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Measure every run, and ask the long ones for an end."""
    for record in records:
        if record.scenario in _LONG and (fault := record.uncontrolled_end) is not None:
            return failed(fault, "End such a run with run.failed, or raise --timeout.", scenario=record.scenario.name)
    advice = "Stream long text in pieces; keep the rest in artifacts or storage."
    return _judge_by(SizeRule, _NO_RESULTS, advice)(target, records)


_LONG: Final = (LONG_INPUT, LONG_ANSWER)
_NO_RESULTS: Final = "the runner yielded nothing"


def _rule_case(
    rule: type[Rule],
    title: str,
    sources: tuple[str, ...],
    *,
    untried: str = _NO_RESULTS,
    advice: str = _RESULTS_HELP,
    scenarios: tuple[Scenario, ...] = (PLAIN,),
) -> Case:
    return Case(rule.id, title, sources, scenarios, _judge_by(rule, untried, advice), sees_all_runs=True)


RESULT_CASES: Final = (
    _rule_case(
        OrderRule,
        "results end with one run.completed or run.failed, tool calls come in pairs",
        ("P-S1", "PROTOCOL 7.2"),
        advice="Yield results.completed or results.failed once, last, on every path.",
    ),
    _rule_case(
        LateRule,
        "nothing follows the end",
        ("D-22", "P-T5"),
        untried="no run ended",
        advice="Return right after the end.",
    ),
    _rule_case(
        DuplicateRule,
        "numbers of results rise",
        ("P-S3", "P-S4"),
        untried="the runner does not number its results",
        advice="Count results of a run from 1 in one place, or leave the numbers out.",
    ),
    _rule_case(
        MissingRule,
        "numbers start at 1 and have no gaps",
        ("P-S3", "P-S5", "P-S6"),
        untried="the runner does not number its results, and within one process need not",
        advice="Count results of a run from 1 in one place, or leave the numbers out.",
    ),
    _rule_case(RunIdRule, "results carry the run's id", ("P-V5", "P-D8"), advice=_RESULTS_HELP),
    _rule_case(EnvelopeRule, "results are objects with the fields of the protocol", ("P-V4", "P-V9")),
    _rule_case(PayloadRule, "payloads are valid JSON of their type", ("P-V1", "P-V7", "P-V11")),
    _rule_case(
        TypeRule,
        "types are known or well-formed",
        ("P-V3", "P-V10"),
        advice="Use a type of the protocol, or a dotted name of your own.",
    ),
    Case(
        SizeRule.id,
        "asked for 5 MB, it ends and stays within the limits",
        ("D-28", "P-V6", "P-V8"),
        (PLAIN, *_LONG),
        _judge_long_output,
        sees_all_runs=True,
    ),
    _rule_case(
        StreamingRule,
        "deltas are increments, or marked as snapshots",
        ("D-26", "LA-03"),
        untried="the runner does not stream",
        advice="Send only what is new in each delta.",
    ),
    _rule_case(
        UsageRule,
        "usage is valid, and absent where it is unknown",
        ("D-32",),
        untried="the runner reports no usage",
        advice="Pass usage on as the model reported it, and None where it reported none.",
        scenarios=(PLAIN, WITHOUT_USAGE),
    ),
)
