import pytest
from pydantic import TypeAdapter, ValidationError

from runhost.protocol import (
    STABLE_EVENT_TYPES,
    EventType,
    Identifier,
    InvalidRunnerId,
    RunnerId,
    run_id_from,
    workflow_id_for,
)

identifiers: TypeAdapter[str] = TypeAdapter(Identifier)
event_types: TypeAdapter[str] = TypeAdapter(EventType)


def test_runner_id_parses_and_writes_the_same_text() -> None:
    runner_id = RunnerId.parse("plugin:runhost/openai-chat/default")

    assert runner_id == RunnerId("runhost", "openai-chat", "default")
    assert runner_id.plugin_id == "runhost/openai-chat"
    assert str(runner_id) == "plugin:runhost/openai-chat/default"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "plugin:",
        "runhost/scripted/default",
        "plugin:runhost/scripted",
        "plugin:runhost/scripted/default/more",
        "plugin:/scripted/default",
        "plugin:runhost//default",
        "plugin:runhost/scripted/",
        "Plugin:runhost/scripted/default",
        "plugin:a/b/" + "c" * 255,
    ],
)
def test_other_forms_are_no_runner_id(value: str) -> None:
    with pytest.raises(InvalidRunnerId, match="write plugin:"):
        RunnerId.parse(value)


def test_slash_inside_a_segment_is_no_runner_id() -> None:
    with pytest.raises(InvalidRunnerId):
        RunnerId("runhost", "scripted/extra", "default")


def test_error_does_not_repeat_an_endless_runner_id() -> None:
    with pytest.raises(InvalidRunnerId) as caught:
        RunnerId.parse("x" * 100_000)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", ["a", "ou_7d8a6e", "用户-42", "x" * 255])
def test_identifier_accepts_opaque_text(value: str) -> None:
    assert identifiers.validate_python(value) == value


@pytest.mark.parametrize("value", ["", "x" * 256, "a\x00b", "a\nb", "\ud800", 7, None, b"a"])
def test_identifier_refuses_what_cannot_be_stored(value: object) -> None:
    with pytest.raises(ValidationError):
        identifiers.validate_python(value, strict=True)


@pytest.mark.parametrize("value", [*sorted(STABLE_EVENT_TYPES), "order.item_2.shipped"])
def test_event_type_accepts_dotted_names(value: str) -> None:
    assert event_types.validate_python(value) == value


@pytest.mark.parametrize(
    "value",
    ["message", "Message.received", "message.", ".message", "message..x", "2.a", "a.b\n", "a." + "b" * 99],
)
def test_event_type_refuses_other_names(value: str) -> None:
    with pytest.raises(ValidationError):
        event_types.validate_python(value)


def test_workflow_id_leads_back_to_its_run() -> None:
    assert workflow_id_for("0190-a") == "run-0190-a"
    assert run_id_from("run-0190-a") == "0190-a"


@pytest.mark.parametrize("workflow_id", ["", "run-", "other-1"])
def test_foreign_workflow_id_names_no_run(workflow_id: str) -> None:
    with pytest.raises(ValueError, match="names no run"):
        run_id_from(workflow_id)
