import base64
from typing import Any

import pytest
from pydantic import ValidationError

from runhost.protocol import (
    MAX_INLINE_ARTIFACT_BYTES,
    STRICT_PAYLOADS,
    AgentRunResult,
    ArtifactCreatedData,
    InvalidPayload,
    MalformedResult,
    MessageChunk,
    MessageDeltaData,
    ResultType,
    RunFailureCode,
    StrictModel,
    ToolCallCompletedData,
    Usage,
    decode_content,
    parse_result,
    validate_payload,
)

RUN = "0190-a"
SECRET = "canary-4f1d"
DELTA: dict[str, Any] = {"run_id": RUN, "type": "message.delta", "data": {"chunk": {"content": "hi"}}}
PAYLOADS: dict[str, dict[str, Any]] = {
    "message.delta": {"chunk": {"role": "assistant", "content": "hi"}},
    "message.completed": {"message": {"role": "assistant", "content": "hi"}},
    "artifact.created": {"artifact_type": "file"},
    "state.updated": {"scope": "actor", "key": "k", "value": None},
    "action.requested": {"action": "message.edit", "target": None, "payload": {"text": "x"}},
    "run.completed": {"finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}},
    "run.failed": {"code": "runner.error", "error": "no luck", "retryable": True},
}


def result(kind: str, data: dict[str, Any]) -> AgentRunResult:
    return AgentRunResult(run_id=RUN, type=kind, data=data)


def malformed(value: object, run_id: str | None = RUN) -> str:
    with pytest.raises(MalformedResult) as caught:
        parse_result(value, run_id=run_id)
    assert caught.value.code is RunFailureCode.RUNNER_PROTOCOL
    return caught.value.reason


# The envelope


def test_result_is_read_from_model_or_mapping() -> None:
    parsed = parse_result(DELTA, run_id=RUN)

    assert parsed == parse_result(parsed.result, run_id=RUN)
    assert parsed.result == AgentRunResult.model_validate(DELTA)
    assert parsed.warnings == ()


def test_result_without_run_id_belongs_to_the_run_that_reads_it() -> None:
    assert parse_result({"type": "x"}, run_id=RUN).result.run_id == RUN
    assert parse_result({"type": "x", "run_id": None}, run_id=RUN).result.run_id == RUN
    assert malformed({"type": "x"}, run_id=None).startswith("run_id: ")


@pytest.mark.parametrize(
    "value", [None, 7, "text", b"x", [], object(), MessageChunk()], ids=lambda value: type(value).__name__
)
def test_rubbish_is_no_result(value: object) -> None:
    assert type(value).__name__ in malformed(value)


@pytest.mark.parametrize("kind", [None, "", 7, ["x"], "x" * 101, "a\x00b", "\ud800"])
def test_result_without_usable_type_breaks_the_protocol(kind: object) -> None:
    """P-V4."""
    assert malformed(DELTA | {"type": kind}).startswith("type: ")
    assert malformed({key: part for key, part in DELTA.items() if key != "type"}).startswith("type: ")


@pytest.mark.parametrize("kind", ["state.updated", "artifact.created", "message.delta", "x.unknown"])
def test_result_for_another_run_breaks_the_protocol(kind: str) -> None:
    """P-V5, and the same for every other type."""
    assert malformed({"run_id": "other", "type": kind}).startswith("run_id: ")
    assert malformed({"run_id": "other", "type": kind, "data": None}).startswith("run_id: ")


@pytest.mark.parametrize("run_id", [7, "", "x" * 256])
def test_unusable_run_id_breaks_the_protocol(run_id: object) -> None:
    assert malformed(DELTA | {"run_id": run_id}).startswith("run_id: ")


@pytest.mark.parametrize("sequence", ["3", 3.0, 3.5, True, [], 2**63, float("nan")])
def test_sequence_that_is_no_integer_is_a_warning(sequence: object) -> None:
    """P-S6."""
    parsed = parse_result(DELTA | {"sequence": sequence}, run_id=RUN)

    assert parsed.result == AgentRunResult.model_validate(DELTA)
    assert len(parsed.warnings) == 1
    assert parsed.warnings[0].startswith("sequence: ")


@pytest.mark.parametrize("sequence", [0, -1])
def test_sequence_below_one_is_a_warning_and_kept(sequence: int) -> None:
    """P-S6."""
    parsed = parse_result(DELTA | {"sequence": sequence}, run_id=RUN)

    assert parsed.result.sequence == sequence
    assert parsed.warnings == ("sequence: numbers start at 1",)


def test_other_optional_parts_that_are_unusable_are_warnings() -> None:
    parsed = parse_result(DELTA | {"timestamp": 1.5, "usage": "many", "sequence": 4, "v": 2}, run_id=RUN)

    assert parsed.result == AgentRunResult.model_validate(DELTA | {"sequence": 4})
    assert [warning.split(":")[0] for warning in parsed.warnings] == [
        "timestamp",
        "usage",
        "unknown fields ignored",
    ]


def test_names_of_unknown_fields_are_shown_in_part() -> None:
    value: dict[Any, Any] = {**DELTA, 7: 1, "x" * 10_000: 1, **{f"f{n}": n for n in range(1_000)}}

    (warning,) = parse_result(value, run_id=RUN).warnings

    assert "and 999 more" in warning
    assert len(warning) < 200


@pytest.mark.parametrize("data", [None, [], "x", {"a": float("nan")}, {"a": object()}, {1: 2}, {"a": 2**70}])
def test_data_that_is_no_json_object_is_rejected_not_fatal(data: object) -> None:
    with pytest.raises(InvalidPayload, match="data") as caught:
        parse_result(DELTA | {"data": data, "sequence": 4}, run_id=RUN)
    assert caught.value.result == AgentRunResult(run_id=RUN, type="message.delta", sequence=4)


def test_model_built_without_validation_is_checked() -> None:
    built = AgentRunResult.model_construct(run_id=RUN, type="x", data={"a": object()})

    with pytest.raises(InvalidPayload, match=r"data\.a: object is no JSON value"):
        parse_result(built, run_id=RUN)


def test_usage_is_read_with_the_result() -> None:
    parsed = parse_result(DELTA | {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, run_id=RUN)

    assert parsed.result.usage == Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7)


def test_envelope_of_an_author_refuses_unknown_fields() -> None:
    with pytest.raises(ValidationError):
        AgentRunResult.model_validate(DELTA | {"seqence": 1})


# The payload


def test_every_strict_type_has_an_example() -> None:
    assert set(PAYLOADS) == {str(kind) for kind in STRICT_PAYLOADS}
    assert set(ResultType) - set(STRICT_PAYLOADS) == {"tool.call.started", "tool.call.completed"}


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_valid_payload_is_read(kind: str) -> None:
    payload = validate_payload(result(kind, PAYLOADS[kind]))

    assert isinstance(payload, StrictModel)
    assert payload.model_dump(exclude_unset=True) == PAYLOADS[kind]


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_unknown_field_in_a_strict_payload_is_rejected(kind: str) -> None:
    """P-V1."""
    with pytest.raises(InvalidPayload, match=r"^data\.note: Extra inputs are not permitted$"):
        validate_payload(result(kind, PAYLOADS[kind] | {"note": SECRET}))


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_missing_field_in_a_strict_payload_is_rejected(kind: str) -> None:
    """P-V1."""
    with pytest.raises(InvalidPayload, match="Field required") as caught:
        validate_payload(result(kind, {}))
    assert caught.value.result.type == kind


@pytest.mark.parametrize(
    ("kind", "data", "path"),
    [
        ("message.delta", {"chunk": {"content": "x", "note": 1}}, "data.chunk.note"),
        ("message.delta", {"chunk": None}, "data.chunk"),
        ("message.completed", {"message": {"content": "x"}}, "data.message.role"),
        (
            "message.completed",
            {"message": {"role": "user", "content": [{"type": "x"}]}},
            "data.message.content[0].type",
        ),
        ("state.updated", {"scope": "binding", "key": "k", "value": 1}, "data.scope"),
        ("state.updated", {"scope": "actor", "key": "", "value": 1}, "data.key"),
        ("state.updated", {"scope": "actor", "key": "k" * 256, "value": 1}, "data.key"),
        ("state.updated", {"scope": "actor", "key": "k"}, "data.value"),
        ("artifact.created", {"artifact_type": "file", "size_bytes": -1}, "data.size_bytes"),
        ("run.failed", {"code": "", "error": "x"}, "data.code"),
        (
            "run.completed",
            {"finish_reason": "stop", "message": {"role": "user", "more": 1}},
            "data.message.more",
        ),
    ],
)
def test_rejection_names_the_path(kind: str, data: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        validate_payload(result(kind, data))
    assert f"{path}: " in caught.value.reason


def test_rejection_shows_no_value_and_is_short() -> None:
    data = {"chunk": {SECRET * 5_000: SECRET, "role": SECRET, "content": {SECRET: SECRET}}}

    with pytest.raises(InvalidPayload) as caught:
        validate_payload(result("message.delta", data))

    assert len(caught.value.reason) <= 400
    assert caught.value.reason.count(SECRET) <= 6, "only the cut name of the unknown field"


@pytest.mark.parametrize("kind", ["tool.call.started", "tool.call.completed", "x.invented"])
def test_loose_and_unknown_types_take_any_payload(kind: str) -> None:
    """P-V2, P-V3."""
    assert validate_payload(result(kind, {"whatever": [1]})) is None


def test_tool_call_models_read_the_usual_payload() -> None:
    payload = {"tool_call_id": "c", "tool_name": "t", "result": {"now": 1}, "error": None, "took_ms": 3}

    assert ToolCallCompletedData.model_validate(payload).result == {"now": 1}


@pytest.mark.parametrize("message", [None, {}, "", []])
def test_completion_with_an_empty_message_breaks_the_protocol(message: object) -> None:
    """P-V11."""
    with pytest.raises(MalformedResult, match="leave the key out"):
        validate_payload(result("run.completed", {"finish_reason": "stop", "message": message}))


def test_completion_without_message_is_fine() -> None:
    assert validate_payload(result("run.completed", {"finish_reason": "stop"})) is not None


def test_payload_keeps_text_exactly() -> None:
    text = "a\x00\ud83d"

    payload = validate_payload(result("message.delta", {"chunk": {"content": text}}))

    assert isinstance(payload, MessageDeltaData)
    assert payload.chunk.content == text


# Artifact content


def artifact(content: str | None) -> ArtifactCreatedData:
    return ArtifactCreatedData(artifact_type="file", content_base64=content)


@pytest.mark.parametrize("size", [0, 1, 2, 3, MAX_INLINE_ARTIFACT_BYTES])
def test_content_up_to_one_mebibyte_is_decoded(size: int) -> None:
    assert decode_content(artifact(base64.b64encode(b"x" * size).decode())) == b"x" * size


def test_artifact_without_content_has_none() -> None:
    assert decode_content(artifact(None)) is None


@pytest.mark.parametrize("content", ["a", "ab=c", "a b=", "aGk=\n", "你好", "\ud800", "aGk=aGk="])
def test_content_that_is_no_base64_breaks_the_protocol(content: str) -> None:
    """P-V7."""
    with pytest.raises(MalformedResult, match="no valid base64"):
        decode_content(artifact(content))


@pytest.mark.parametrize("size", [MAX_INLINE_ARTIFACT_BYTES + 1, MAX_INLINE_ARTIFACT_BYTES + 100])
def test_content_over_one_mebibyte_breaks_the_protocol(size: int) -> None:
    """P-V7."""
    with pytest.raises(MalformedResult, match="exceeds 1048576 bytes"):
        decode_content(artifact(base64.b64encode(b"x" * size).decode()))
