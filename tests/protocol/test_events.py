from typing import Any

import pytest
from pydantic import ValidationError

from runhost.protocol import (
    MAX_EVENT_DATA_BYTES,
    ActorContext,
    AgentEventEnvelope,
    AgentInput,
    DeliveryContext,
)

ENVELOPE: dict[str, Any] = {
    "event_id": "e1",
    "event_type": "message.received",
    "event_time": 1_785_000_000,
    "source": "platform",
    "source_event_type": "im.message.receive_v1",
    "bot_id": "b",
    "conversation_id": "c",
    "actor": {"actor_type": "user", "actor_id": "u", "actor_name": "张三"},
    "subject": {"subject_type": "message", "subject_id": "m"},
    "input": {
        "text": "hi",
        "contents": [{"type": "image_url", "image_url": {"url": "https://example.org"}}],
        "attachments": [{"artifact_id": "a", "size": 3}],
    },
    "delivery": {"surface": "chat", "reply_target": {"chat": 1}, "supports_streaming": True},
    "raw_ref": {"ref_id": "raw-1"},
    "data": {"mentions": ["b"]},
    "metadata": {"platform": "feishu"},
}


def path_of_fault(envelope: dict[str, Any]) -> tuple[str | int, ...]:
    with pytest.raises(ValidationError) as caught:
        AgentEventEnvelope.model_validate(envelope)
    (fault,) = caught.value.errors()
    return fault["loc"]


def put(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Copy `ENVELOPE` with one value set."""
    envelope: Any = AgentEventEnvelope.model_validate(ENVELOPE).model_dump(exclude_unset=True)
    target = envelope
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return envelope


def test_envelope_is_read_and_survives_the_wire() -> None:
    envelope = AgentEventEnvelope.model_validate(ENVELOPE)

    assert envelope.input.attachments[0].size_bytes == 3
    assert AgentEventEnvelope.model_validate_json(envelope.model_dump_json()) == envelope


def test_smallest_envelope_has_empty_rest() -> None:
    envelope = AgentEventEnvelope(
        event_id="e",
        event_type="api.invoked",
        source="api",
        input=AgentInput(),
        delivery=DeliveryContext(surface="api"),
    )

    assert (envelope.actor, envelope.data, envelope.metadata) == (None, {}, {})


def test_parts_may_be_given_as_models() -> None:
    actor = ActorContext(actor_type="user")

    assert AgentEventEnvelope.model_validate(ENVELOPE | {"actor": actor}).actor is actor


@pytest.mark.parametrize(
    "path",
    [
        ("surprise",),
        ("actor", "surprise"),
        ("subject", "surprise"),
        ("input", "surprise"),
        ("input", "contents", 0, "surprise"),
        ("input", "contents", 0, "image_url", "surprise"),
        ("input", "attachments", 0, "surprise"),
        ("delivery", "surprise"),
        ("raw_ref", "surprise"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_unknown_field_is_refused_at_its_place(path: tuple[str | int, ...]) -> None:
    assert path_of_fault(put(path, 1)) == path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("event_id",), "x" * 256),
        (("event_id",), ""),
        (("event_id",), "a\x00"),
        (("event_id",), 7),
        (("event_type",), "a." + "b" * 99),
        (("event_type",), "im.Message"),
        (("event_time",), "2026-08-01"),
        (("event_time",), 1_785_000_000_000),
        (("event_time",), True),
        (("source",), "host"),
        (("source_event_type",), "x" * 256),
        (("bot_id",), "x" * 256),
        (("workspace_id",), 1),
        (("conversation_id",), ""),
        (("thread_id",), "x" * 256),
        (("actor", "actor_id"), "x" * 256),
        (("subject", "subject_type"), "x" * 51),
        (("input", "text"), 5),
        (("input", "attachments", 0, "artifact_id"), "x" * 256),
        (("delivery", "supports_streaming"), "yes"),
        (("delivery", "reply_target"), {"a": float("nan")}),
        (("data",), []),
        (("data",), {"a": [float("inf")]}),
        (("metadata",), {"a": 2**64}),
    ],
    ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else "",
)
def test_wrong_value_is_refused_at_its_place(path: tuple[str | int, ...], value: object) -> None:
    location = path_of_fault(put(path, value))

    assert location[: len(path)] == path


@pytest.mark.parametrize("field", ["data", "metadata"])
def test_object_is_bounded_in_bytes_of_json(field: str) -> None:
    overhead = len('{"k":""}')
    fits = {"k": "é" * ((MAX_EVENT_DATA_BYTES - overhead) // 2)}

    AgentEventEnvelope.model_validate(ENVELOPE | {field: fits})
    assert path_of_fault(ENVELOPE | {field: {"k": fits["k"] + "é"}}) == (field,)


def test_bound_copes_with_lone_surrogates() -> None:
    data = {"k": "\ud800"}

    assert AgentEventEnvelope.model_validate(ENVELOPE | {"data": data}).data == data
