"""Cases about how a runner meets its input, its configuration, and company."""

from collections.abc import Sequence
from typing import Final

from runhost.protocol import OUTPUT_REQUIRED_EVENT_TYPES, ResultType
from runners.conformance.case import Case, Judge
from runners.conformance.record import RunRecord
from runners.conformance.scenario import (
    HOSTILE_TEXTS,
    NEWER_CONTEXT,
    PLAIN,
    SILENCES,
    TOGETHER,
    UNKNOWN_EVENT,
    WRONG_CONFIGS,
)
from runners.conformance.target import Target
from runners.conformance.verdict import Verdict, failed, passed, passed_in


def _judge_controlled(advice: str) -> Judge:
    """Ask only that every run ends by itself, well or not."""

    def judge(_target: Target, records: Sequence[RunRecord]) -> Verdict:
        for record in records:
            if (fault := record.uncontrolled_end) is not None:
                return failed(fault, advice, scenario=record.scenario.name)
        return passed_in(len(records))

    return judge


def _judge_answer(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask for a visible answer to a plain message (SM-3)."""
    (record,) = records
    if (fault := record.uncontrolled_end) is not None:
        return failed(fault, "Make the runner work for a plain message first.", scenario=PLAIN.name)
    if record.failure is not None:
        return failed(
            f"run.failed with code {record.failure.code!r}: {record.failure.error:.300}",
            "Give a configuration that works with --config; --model-endpoint offers a model.",
            scenario=PLAIN.name,
        )
    if not record.has_output:
        return failed(
            f"{record.results} results, and none of them shows anything",
            "Yield a message, an artifact, a state update or an action before the end.",
            scenario=PLAIN.name,
        )
    return passed()


def _judge_silence(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Ask for words or a failure where there is nothing to answer (D-24, LA-08)."""
    for record in records:
        advice = "Say so in a message, or end with results.failed."
        if (fault := record.uncontrolled_end) is not None:
            return failed(fault, advice, scenario=record.scenario.name)
        is_success = record.end is not None and record.end.type == ResultType.RUN_COMPLETED
        if is_success and not record.has_output and record.scenario.event_type in OUTPUT_REQUIRED_EVENT_TYPES:
            return failed("run.completed without anything to show", advice, scenario=record.scenario.name)
    return passed_in(len(records))


def _judge_together(_target: Target, records: Sequence[RunRecord]) -> Verdict:
    """Look for the words of one run in another (P-D8)."""
    advice = "Keep nothing of a run in the instance or in globals; pass ctx to where it is needed."
    for record in records:
        if (fault := record.uncontrolled_end) is not None:
            return failed(fault, advice, scenario=TOGETHER.name)
        others = [TOGETHER.marker(other.number) for other in records if other is not record]
        if any(marker in record.text for marker in others):
            return failed("a run says what only the input of another one held", advice, scenario=TOGETHER.name)
    return passed(f"{len(records)} runs at the same time")


BEHAVIOUR_CASES: Final = (
    Case("answer", "a plain message gets a visible answer", ("SM-3", "D-24"), (PLAIN,), _judge_answer),
    Case(
        "hostile_text",
        "NUL, lone surrogates, emoji and right-to-left text do no harm",
        ("D-31",),
        HOSTILE_TEXTS,
        _judge_controlled("Escape or replace what cannot be encoded; text may hold any code point."),
    ),
    Case(
        "newer_context",
        "fields that it does not know are ignored",
        ("P-V9", "P-E2"),
        (NEWER_CONTEXT,),
        _judge_controlled("Read the context leniently."),
    ),
    Case(
        "unknown_event",
        "an event that it does not know ends in order",
        ("D-5", "EVENTS"),
        (UNKNOWN_EVENT,),
        _judge_controlled("End with run.completed or run.failed for events that mean nothing to the runner."),
    ),
    Case(
        "crash",
        "a wrong configuration is reported, not raised",
        ("PROTOCOL 10", "LA-07"),
        WRONG_CONFIGS,
        _judge_controlled("Check the configuration first, and end with results.failed and a code of your own."),
    ),
    Case("silence", "a message without text is no blank success", ("D-24", "LA-08"), SILENCES, _judge_silence),
    Case("together", "runs at the same time do not mix", ("P-D7", "P-D8"), (TOGETHER,), _judge_together),
)
