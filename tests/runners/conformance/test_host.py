"""The host of the kit: it answers every method as the protocol has it, and notes what was wrong with a call."""

import asyncio
from typing import Any

import pytest

from runhost.protocol import (
    AgentAPIException,
    AgentRunContext,
    AgentRunnerCapabilities,
    AgentRunnerDescriptor,
    AgentRunnerPermissions,
    ErrorCode,
    JsonObject,
)
from runhost.protocol.host_api import HOST_METHODS, MAX_REQUEST_BYTES
from runners.conformance import contexts
from runners.conformance.contexts import build_context
from runners.conformance.host import RecordingHost
from runners.conformance.scenario import LONG_ANSWER, PLAIN, REFUSALS, HostManner, Scenario
from runners.conformance.target import Target
from runners.in_process import InProcessTransport
from runners.registry import RunnerRegistry

EVERYTHING = AgentRunnerPermissions(
    models=["invoke", "stream", "rerank"],
    tools=["detail", "call"],
    knowledge_bases=["list", "retrieve"],
    history=["page", "search"],
    events=["get", "page"],
    artifacts=["metadata", "read"],
    storage=["plugin", "workspace"],
    files=["config", "knowledge"],
)
CHAT: JsonObject = {"llm_model_uuid": contexts.MODEL, "messages": [{"role": "user", "content": "hello"}]}
VALUE: JsonObject = {"key": "k", "value_base64": "AA=="}
STATE: JsonObject = {"scope": "actor", "key": "k"}
PARAMS: dict[str, JsonObject] = {
    **dict.fromkeys((name for name in HOST_METHODS if name.startswith("invoke_llm")), CHAT),
    "invoke_rerank": {"rerank_model_id": contexts.RERANK_MODEL, "query": "q", "documents": ["a", "b"]},
    "count_tokens": CHAT,
    "get_tool_detail": {"tool_name": contexts.TOOL},
    "call_tool": {"tool_name": contexts.TOOL},
    "retrieve_knowledge": {"kb_id": contexts.KNOWLEDGE_BASE, "query_text": "q"},
    "history_search": {"query": "q"},
    "event_get": {"event_id": "conformance-plain-0"},
    "state_get": STATE,
    "state_set": {**STATE, "value": 1},
    "state_delete": STATE,
    "state_list": {"scope": "actor"},
    **{f"get_{area}_storage": {"key": "k"} for area in ("plugin", "workspace")},
    **{f"set_{area}_storage": VALUE for area in ("plugin", "workspace")},
    **{f"delete_{area}_storage": {"key": "k"} for area in ("plugin", "workspace")},
    "get_file": {"file_key": contexts.FILE},
}
"""Parameters of a call that is granted, by method; those that take none are left out."""

ARTIFACTS = ("artifact_metadata", "artifact_read", "artifact_read_range")
ANSWERED = sorted(HOST_METHODS.keys() - set(ARTIFACTS))


def context_with(permissions: AgentRunnerPermissions, scenario: Scenario = PLAIN) -> AgentRunContext:
    descriptor = AgentRunnerDescriptor(
        id="plugin:a/b/c",
        label={"en_US": "c"},
        plugin_author="a",
        plugin_name="b",
        runner_name="c",
        permissions=permissions,
        capabilities=AgentRunnerCapabilities(steering=permissions is EVERYTHING),
    )
    transport = InProcessTransport(RunnerRegistry(list))
    return build_context(Target(descriptor, transport), scenario, 0)


def host_with(permissions: AgentRunnerPermissions = EVERYTHING, scenario: Scenario = PLAIN) -> RecordingHost:
    return RecordingHost(context_with(permissions, scenario), scenario, lambda: None)


async def answers_of(host: RecordingHost, method: str, params: JsonObject) -> list[JsonObject]:
    if HOST_METHODS[method].is_stream:
        return [event async for event in host.stream(method, params)]
    return [await host.call(method, params)]


async def refusal_of(host: RecordingHost, method: str, params: JsonObject) -> str:
    with pytest.raises(AgentAPIException) as raised:
        await answers_of(host, method, params)
    return raised.value.error.code


@pytest.mark.parametrize("method", ANSWERED)
async def test_granted_method_is_answered_by_its_model(method: str) -> None:
    """Reads the methods from the protocol: a new one that the kit's host does not answer fails here."""
    host = host_with()
    answers = await answers_of(host, method, PARAMS.get(method, {}))
    assert answers
    for answer in answers:
        HOST_METHODS[method].returns.model_validate(answer)
    assert (host.calls, host.faults) == (1, [])


@pytest.mark.parametrize("method", ARTIFACTS)
async def test_artifact_is_unknown_without_that_being_a_fault(method: str) -> None:
    host = host_with()
    assert await refusal_of(host, method, {"artifact_id": "a"}) == "not_found"
    assert host.faults == []


NEEDS_NO_GRANT = {
    "get_langbot_version",
    "list_knowledge_bases",
    "get_prompt",
    *(method for method in HOST_METHODS if method.startswith("state_")),
}


@pytest.mark.parametrize("method", sorted(HOST_METHODS.keys() - NEEDS_NO_GRANT))
async def test_method_without_its_grant_is_refused_and_noted(method: str) -> None:
    """PM-1, PM-2, PM-3, PM-8."""
    host = host_with(AgentRunnerPermissions())
    params = PARAMS.get(method, {"artifact_id": "a"} if method in ARTIFACTS else {})
    assert await refusal_of(host, method, params) == "unauthorized"
    assert len(host.faults) == 1
    assert method in host.faults[0]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no_such_method", {}, "invalid_argument"),
        ("invoke_llm_stream", CHAT, "invalid_argument"),
        ("state_get", {"scope": "everyone", "key": "k"}, "invalid_argument"),
        ("state_get", {**STATE, "colour": "red"}, "invalid_argument"),
        ("history_page", {"conversation_id": "somebody-elses"}, "unauthorized"),
    ],
    ids=["unknown", "stream as call", "wrong value", "unknown field", "other conversation"],
)
async def test_wrong_call_is_refused_and_noted(method: str, params: JsonObject, code: str) -> None:
    host = host_with()
    with pytest.raises(AgentAPIException) as raised:
        await host.call(method, params)
    assert raised.value.error.code == code
    assert len(host.faults) == 1


@pytest.mark.parametrize("scenario", REFUSALS, ids=lambda scenario: scenario.name)
async def test_refusing_host_refuses_with_its_code_and_notes_no_fault(scenario: Scenario) -> None:
    host = host_with(scenario=scenario)
    with pytest.raises(AgentAPIException) as raised:
        await host.call("invoke_llm", CHAT)
    assert raised.value.error.code == scenario.refusal
    assert raised.value.error.retryable == (scenario.refusal in {ErrorCode.RATE_LIMITED, ErrorCode.RUNTIME_ERROR})
    assert host.faults == []


async def test_hanging_host_refuses_at_the_deadline() -> None:
    """P-T1: the host bounds each call by the deadline."""
    host = host_with(scenario=Scenario("hangs", host=HostManner.HANGS, deadline_seconds=0.01))
    assert await refusal_of(host, "invoke_llm", CHAT) == "deadline_exceeded"


async def test_hanging_host_without_a_deadline_answers_nothing() -> None:
    host = host_with(scenario=Scenario("hangs", host=HostManner.HANGS))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(host.call("invoke_llm", CHAT), 0.01)


async def test_call_that_is_too_large_is_refused() -> None:
    """D-16."""
    value = "x" * MAX_REQUEST_BYTES
    host = host_with()
    assert await refusal_of(host, "state_set", {**STATE, "value": value}) == "payload_too_large"
    assert await host.call("set_plugin_storage", {"key": "k", "value_base64": value}) == {}


async def test_state_and_storage_keep_what_is_put() -> None:
    host = host_with()
    await host.call("state_set", {**STATE, "value": [1]})
    await host.call("set_plugin_storage", VALUE)
    assert await host.call("state_get", STATE) == {"value": [1]}
    assert (await host.call("state_list", {"scope": "actor", "prefix": "k"}))["keys"] == ["k"]
    assert await host.call("get_plugin_storage", {"key": "k"}) == {"value_base64": "AA=="}
    assert await host.call("get_workspace_storage", {"key": "k"}) == {"value_base64": None}
    assert await host.call("state_delete", STATE) == {"deleted": True}
    assert await host.call("delete_plugin_storage", {"key": "k"}) == {"deleted": True}


async def test_model_asks_for_an_offered_tool_once() -> None:
    """LA-04."""
    host = host_with()
    chat: dict[str, Any] = {**CHAT, "funcs": [{"name": contexts.TOOL}]}
    asked: Any = (await host.call("invoke_llm", chat))["message"]
    assert asked["tool_calls"][0]["function"]["name"] == contexts.TOOL
    chat["messages"] = [*chat["messages"], asked, {"role": "tool", "tool_call_id": "call-1", "content": "done"}]
    answered: Any = (await host.call("invoke_llm", chat))["message"]
    assert answered["content"] == "You said: hello"


async def test_long_answers_are_longer_than_5_mb_and_the_same_in_pieces() -> None:
    host = host_with(scenario=LONG_ANSWER)
    whole: Any = await host.call("invoke_llm", CHAT)
    pieces: list[Any] = [event async for event in host.stream("invoke_llm_stream", CHAT)]
    assert len(whole["message"]["content"]) > 5_000_000
    assert "".join(event["chunk"]["content"] for event in pieces if "chunk" in event) == whole["message"]["content"]
    assert pieces[-1]["usage"] == {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
