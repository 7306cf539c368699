"""Return models of the host API: pages, records, artifacts, steering."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from runhost.protocol import (
    AgentEventRecord,
    ArtifactMetadata,
    ArtifactReadResult,
    EventPage,
    HistoryPage,
    HistorySearchResult,
    SteeringInputItem,
    SteeringPullResult,
    TranscriptItem,
)

ITEM: dict[str, Any] = {"transcript_id": "t", "event_id": "e", "role": "user"}
RECORD: dict[str, Any] = {"event_id": "e", "event_type": "message.received", "source": "host"}
STEERED: dict[str, Any] = {
    "claimed_run_id": "r",
    "runner_id": "plugin:a/b/c",
    "event": {"event_id": "e", "event_type": "message.received", "source": "platform"},
    "input": {"text": "also this"},
}
EXAMPLES: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (TranscriptItem, ITEM),
    (HistoryPage, {"items": [ITEM], "next_cursor": "c", "has_more": True}),
    (HistorySearchResult, {"items": [ITEM], "query": "q"}),
    (AgentEventRecord, RECORD),
    (EventPage, {"items": [RECORD]}),
    (ArtifactMetadata, {"artifact_id": "a", "artifact_type": "file", "source": "runner"}),
    (ArtifactReadResult, {"artifact_id": "a", "offset": 0, "length": 2, "content_base64": "aGk="}),
    (SteeringInputItem, STEERED),
    (SteeringPullResult, {"items": [STEERED]}),
]


@pytest.mark.parametrize(("model", "example"), EXAMPLES, ids=lambda part: getattr(part, "__name__", ""))
def test_return_model_is_read_and_written(model: type[BaseModel], example: dict[str, Any]) -> None:
    value = model.model_validate(example)

    assert value.model_dump(exclude_unset=True) == example
    assert model.model_validate_json(value.model_dump_json()) == value


@pytest.mark.parametrize(("model", "example"), EXAMPLES, ids=lambda part: getattr(part, "__name__", ""))
def test_return_model_refuses_unknown_fields(model: type[BaseModel], example: dict[str, Any]) -> None:
    """P-V9."""
    with pytest.raises(ValidationError, match="surprise"):
        model.model_validate(example | {"surprise": 1})


def test_pages_are_empty_by_default() -> None:
    assert HistoryPage().model_dump() == EventPage().model_dump()
    assert SteeringPullResult().items == []


def test_steered_input_of_a_newer_host_is_readable() -> None:
    item = STEERED | {"input": {"contents": [{"type": "text", "text": "x", "lang": "en"}], "voice": 1}}

    assert SteeringInputItem.model_validate(item).input.contents[0].text == "x"


def test_input_summary_is_bounded() -> None:
    with pytest.raises(ValidationError, match="input_summary"):
        AgentEventRecord.model_validate(RECORD | {"input_summary": "x" * 1_001})
