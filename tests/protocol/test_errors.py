import pytest
from pydantic import ValidationError

from runhost.protocol import (
    AgentAPIError,
    AgentAPIException,
    AgentRunResult,
    ErrorCode,
    MessageDeltaData,
    RunFailureCode,
    describe_validation,
    excerpt,
)

SECRET = "canary-4f1d"


def describe(model: type, value: object, below: str = "") -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return describe_validation(caught.value, below=below)


def test_error_body_refuses_unknown_fields() -> None:
    with pytest.raises(ValidationError):
        AgentAPIError.model_validate({"code": "not_found", "message": "m", "hint": "x"})


def test_error_body_takes_codes_of_newer_hosts() -> None:
    assert AgentAPIError(code="quota_exceeded", message="m").retryable is False


def test_exception_carries_the_error() -> None:
    error = AgentAPIError(code=ErrorCode.RATE_LIMITED, message="slow down", retryable=True)

    assert AgentAPIException(error).error == error
    assert str(AgentAPIException(error)) == "rate_limited: slow down"


def test_codes_named_by_the_protocol_exist() -> None:
    assert {
        "unauthorized", "not_found", "deadline_exceeded", "payload_too_large", "rate_limited",
        "invalid_argument", "runtime_error", "host.action_error",
    } <= set(ErrorCode)  # fmt: skip
    assert {"runner.error", "runner.timeout", "plugin.disabled", "cancelled"} <= set(RunFailureCode)


def test_description_names_the_path_and_no_branch() -> None:
    reason = describe(MessageDeltaData, {"chunk": {"content": [{"type": "text", "text": 1}]}}, below="data")

    assert reason == "data.chunk.content[0].text: Input should be a valid string"


def test_description_shows_no_value() -> None:
    reason = describe(AgentRunResult, {"run_id": [SECRET], "type": {SECRET: 1}, "data": SECRET})

    assert SECRET not in reason
    assert reason.startswith("run_id: ")


def test_description_is_short_whatever_was_sent() -> None:
    reason = describe(AgentRunResult, {"x" * 100_000 + str(n): 1 for n in range(1_000)})

    assert len(reason) <= 400
    assert "x" * 100 not in reason


def test_description_escapes_names_that_cannot_be_stored() -> None:
    reason = describe(AgentRunResult, {"run_id": "r", "type": "t", "data": {"a\x00\ud800": float("nan")}})

    assert reason.startswith("data.a\\x00")
    assert reason.isprintable()
    reason.encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [1, None, "x"]}, "{'a': [1, None, 'x']}"),
        ("\x00\ud800", "'\\x00\\ud800'"),
        (10**5_000, "<integer of 16610 bits>"),
        (object(), "<object>"),
        ({1: {2}}, "{1: <set>}"),
        (float("nan"), "nan"),
    ],
    ids=["object", "unprintable", "huge", "foreign", "foreign inside", "nan"],
)
def test_excerpt_shows_anything(value: object, shown: str) -> None:
    assert excerpt(value) == shown


def test_excerpt_is_bounded_in_length_width_and_depth() -> None:
    wide = {str(n): "x" * 10_000 for n in range(10_000)}
    deep: list[object] = []
    deep.append(deep)

    assert len(excerpt(wide)) <= 2_000
    assert excerpt(deep) == "[[[[<list>]]]]"
