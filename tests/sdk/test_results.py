"""Result builders make what the host accepts, and raise on what it would reject."""

import base64
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from runhost.protocol import (
    AgentRunResult,
    ContentElement,
    JsonObject,
    Message,
    MessageChunk,
    RunFailureCode,
    Usage,
    parse_result,
    validate_payload,
)
from runhost.sdk import results
from tests.runners.contexts import run_context

CTX = run_context()
PICTURE = Message(role="assistant", content=[ContentElement(type="text", text="Look")])


@pytest.mark.parametrize(
    ("result", "kind", "data"),
    [
        pytest.param(
            results.delta(CTX, "Hi"),
            "message.delta",
            {"chunk": {"role": "assistant", "content": "Hi", "mode": "append", "message_index": 0}},
            id="delta",
        ),
        pytest.param(
            results.delta(CTX, "Hi you", mode="replace", message_index=1),
            "message.delta",
            {"chunk": {"role": "assistant", "content": "Hi you", "mode": "replace", "message_index": 1}},
            id="snapshot",
        ),
        pytest.param(
            results.chunk_result(CTX, MessageChunk(content="Hi", is_final=True)),
            "message.delta",
            {"chunk": {"content": "Hi", "is_final": True}},
            id="chunk",
        ),
        pytest.param(
            results.message(CTX, "Hi"),
            "message.completed",
            {"message": {"role": "assistant", "content": "Hi"}},
            id="message",
        ),
        pytest.param(
            results.message(CTX, PICTURE),
            "message.completed",
            {"message": {"role": "assistant", "content": [{"type": "text", "text": "Look"}]}},
            id="structured-message",
        ),
        pytest.param(results.completed(CTX), "run.completed", {"finish_reason": "stop"}, id="completed"),
        pytest.param(
            results.completed(CTX, "length", message="Bye"),
            "run.completed",
            {"finish_reason": "length", "message": {"role": "assistant", "content": "Bye"}},
            id="completed-with-message",
        ),
        pytest.param(
            results.failed(CTX, "acme.no_credit", "top up", retryable=True),
            "run.failed",
            {"code": "acme.no_credit", "error": "top up", "retryable": True},
            id="failed",
        ),
        pytest.param(
            results.failed(CTX, RunFailureCode.RUNNER_TIMEOUT, "too slow"),
            "run.failed",
            {"code": "runner.timeout", "error": "too slow", "retryable": False},
            id="failed-with-a-known-code",
        ),
        pytest.param(
            results.cancelled(CTX),
            "run.failed",
            {"code": "cancelled", "error": "the run was cancelled", "retryable": False},
            id="cancelled",
        ),
        pytest.param(
            results.state(CTX, "actor", "seen", None),
            "state.updated",
            {"scope": "actor", "key": "seen", "value": None},
            id="state",
        ),
        pytest.param(
            results.artifact(CTX, "file", b"\x00\x01", name="a.bin", mime_type="application/x", metadata={"n": None}),
            "artifact.created",
            {
                "artifact_type": "file",
                "name": "a.bin",
                "mime_type": "application/x",
                "metadata": {"n": None},
                "size_bytes": 2,
                "content_base64": base64.b64encode(b"\x00\x01").decode(),
            },
            id="artifact",
        ),
        pytest.param(
            results.artifact(CTX, "image", artifact_id="a1"),
            "artifact.created",
            {"artifact_type": "image", "artifact_id": "a1"},
            id="artifact-without-content",
        ),
        pytest.param(
            results.tool_started(CTX, "c1", "search", {"q": "x"}),
            "tool.call.started",
            {"tool_call_id": "c1", "tool_name": "search", "parameters": {"q": "x"}},
            id="tool-started",
        ),
        pytest.param(
            results.tool_completed(CTX, "c1", "search", result={"hits": 0}),
            "tool.call.completed",
            {"tool_call_id": "c1", "tool_name": "search", "result": {"hits": 0}, "error": None},
            id="tool-completed",
        ),
        pytest.param(
            results.action(CTX, "message.edit", target={"id": "m1"}),
            "action.requested",
            {"action": "message.edit", "target": {"id": "m1"}, "payload": None},
            id="action",
        ),
    ],
)
def test_result_is_what_the_host_accepts(result: AgentRunResult, kind: str, data: JsonObject) -> None:
    assert (result.run_id, result.type, result.data) == (CTX.run_id, kind, data)
    assert result.timestamp is not None
    assert result.sequence is None
    assert parse_result(result, run_id=CTX.run_id).warnings == ()
    validate_payload(result)


def test_result_is_plain_json_through_and_through() -> None:
    result = results.failed(CTX, RunFailureCode.RUNNER_TIMEOUT, "too slow")
    assert type(result.data["code"]) is str
    assert type(result.type) is str


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda usage: results.delta(CTX, "a", usage=usage), id="delta"),
        pytest.param(lambda usage: results.message(CTX, "a", usage=usage), id="message"),
        pytest.param(lambda usage: results.completed(CTX, usage=usage), id="completed"),
        pytest.param(lambda usage: results.failed(CTX, "a.b", "c", usage=usage), id="failed"),
    ],
)
def test_usage_travels_with_the_result(build: Callable[[Usage], AgentRunResult]) -> None:
    usage = Usage(prompt_tokens=1, completion_tokens=2)
    assert build(usage).usage == usage


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: results.delta(CTX, 3), id="delta-is-no-text"),  # pyright: ignore[reportArgumentType]
        pytest.param(lambda: results.state(CTX, "planet", "k", 1), id="scope"),  # pyright: ignore[reportArgumentType]
        pytest.param(lambda: results.state(CTX, "actor", "k", float("nan")), id="nan"),
        pytest.param(lambda: results.state(CTX, "actor", "", 1), id="empty-key"),
        pytest.param(lambda: results.failed(CTX, "", "no code"), id="empty-code"),
        pytest.param(lambda: results.artifact(CTX, ""), id="empty-artifact-type"),
        pytest.param(lambda: results.tool_started(CTX, "", "search", {}), id="empty-call-id"),
    ],
)
def test_mistake_shows_where_it_is_made(build: Callable[[], AgentRunResult]) -> None:
    with pytest.raises(ValidationError):
        build()
