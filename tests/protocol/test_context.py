from typing import Any

import pytest
from pydantic import ValidationError

from runhost.protocol import AgentInput, AgentResources, AgentRunContext, AgentRunRequest, ModelResource

CONTEXT: dict[str, Any] = {
    "run_id": "0190-a",
    "trigger": {"type": "message.received", "source": "platform"},
    "event": {"event_id": "e1", "event_type": "message.received", "source": "platform"},
    "input": {
        "text": "hi",
        "contents": [{"type": "text", "text": "hi"}],
        "attachments": [{"artifact_id": "a"}],
    },
    "delivery": {"surface": "chat"},
    "resources": {"models": [{"model_id": "m1", "operations": ["stream"]}]},
    "context": {"inline_policy": {"mode": "current_event"}, "available_apis": {}},
    "state": {},
    "runtime": {"langbot_version": "4.11.2", "deadline_at": 1_800_000_000},
}


def add_everywhere(value: Any) -> Any:
    """Add a field nobody knows to every object that is a model."""
    if isinstance(value, dict):
        return {key: add_everywhere(item) for key, item in value.items()} | {"added_later": 1}
    return [add_everywhere(item) for item in value] if isinstance(value, list) else value


def test_context_survives_the_wire() -> None:
    context = AgentRunContext.model_validate(CONTEXT)

    assert AgentRunContext.model_validate_json(context.model_dump_json()) == context


def test_fields_of_a_newer_host_are_ignored_at_every_level() -> None:
    newer = add_everywhere(CONTEXT)
    newer["state"] = {}

    assert AgentRunContext.model_validate(newer) == AgentRunContext.model_validate(CONTEXT)


@pytest.mark.parametrize("field", sorted(CONTEXT))
def test_required_part_is_missed_by_name(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        AgentRunContext.model_validate({key: part for key, part in CONTEXT.items() if key != field})


def test_input_that_is_already_a_model_is_taken_as_it_is() -> None:
    given = AgentInput(text="hi")

    assert AgentRunContext.model_validate(CONTEXT | {"input": given}).input is given


@pytest.mark.parametrize("source", ["host", "runner", "http_api", ""])
def test_source_outside_the_six_is_refused(source: str) -> None:
    with pytest.raises(ValidationError, match="source"):
        AgentRunContext.model_validate(CONTEXT | {"trigger": {"type": "x", "source": source}})


def test_deadline_is_finite() -> None:
    with pytest.raises(ValidationError, match="deadline_at"):
        AgentRunContext.model_validate(CONTEXT | {"runtime": {"deadline_at": float("inf")}})


def test_time_in_milliseconds_is_refused() -> None:
    event = CONTEXT["event"] | {"event_time": 1_785_000_000_000}

    with pytest.raises(ValidationError, match="event_time"):
        AgentRunContext.model_validate(CONTEXT | {"event": event})


def test_run_request_names_its_runner() -> None:
    request = AgentRunRequest.model_validate(
        {"runner_id": "plugin:a/b/c", "runner_name": "c", "context": CONTEXT, "transport": "stdio"}
    )

    assert request.context.run_id == "0190-a"


def test_resource_without_operations_allows_all_of_its_kind() -> None:
    assert ModelResource(model_id="m").allows("rerank")
    assert not ModelResource(model_id="m").allows("delete")
    assert not ModelResource(model_id="m", operations=["stream"]).allows("invoke")


def test_resources_are_empty_by_default() -> None:
    resources = AgentResources()

    assert not resources.storage.plugin_storage
    assert resources.models == []
