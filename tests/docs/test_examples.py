"""The examples of the documentation do what it says."""

import asyncio
import inspect
import re
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from runhost.client import RunhostClient
from runhost.protocol import AgentAPIError, AgentAPIException, AgentConfig, AgentRunContext, AgentRunResult, JsonObject
from runhost.protocol.host_api import HOST_METHODS
from runhost.sdk import AgentRunAPIProxy, AgentRunner, connected
from runners.discovery import discover
from runners.registry import RunnerRegistry
from tests.docs.test_docs import blocks, page
from tests.fixtures.host import SCRIPTED
from tests.fixtures.live_host import LiveHost
from tests.sdk.connections import granted

TOOL_CALL = {"id": "call-1", "function": {"name": "clock", "arguments": '{"zone": "UTC"}'}}
ANSWERS: dict[str, Any] = {
    "history_page": {
        "items": [
            {"transcript_id": "t3", "event_id": "event-1", "role": "user", "content": "What time is it?"},
            {"transcript_id": "t2", "event_id": "e0", "role": "assistant", "content": "Hello!"},
            {"transcript_id": "t1", "event_id": "e0", "role": "user", "content": "Hi"},
        ]
    },
    "get_tool_detail": {"tool_name": "clock", "description": "Tells the time", "parameters": {"type": "object"}},
    "invoke_llm": {"message": {"role": "assistant", "tool_calls": [TOOL_CALL]}},
    "call_tool": {"result": "12:00"},
    "invoke_llm_stream": [
        {"chunk": {"content": "It is "}},
        {"chunk": {"content": "noon."}},
        {"usage": {"prompt_tokens": 20, "completion_tokens": 4}},
    ],
    "state_get": {"value": 2},
    "state_set": {},
}


class PlayedHost:
    """Answers each method in its own way; a list is a stream, an exception is raised."""

    def __init__(self, **answers: Any) -> None:
        self.calls: dict[str, JsonObject] = {}
        self._answers = ANSWERS | answers

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        self.calls[method] = params
        if isinstance(self._answers[method], Exception):
            raise self._answers[method]
        return self._answers[method]

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject]:
        self.calls[method] = params
        for event in self._answers[method]:
            yield event


@pytest.fixture
def assistant(tmp_path: Path) -> AgentRunner:
    text = page("docs/runners.md")
    (tmp_path / "runner.yaml").write_text(blocks(text, "yaml")[1])
    (tmp_path / "runner.py").write_text(blocks(text, "python")[1])
    registry = RunnerRegistry(lambda: discover([tmp_path], packages=[]))
    return registry.registered("plugin:acme/assistant/default").instance()


async def run(runner: AgentRunner, host: PlayedHost) -> list[AgentRunResult]:
    fields = granted().model_dump()
    fields |= {"input": {"text": "What time is it?"}}
    fields["resources"]["tools"] = [{"tool_name": "clock"}]
    with connected(host):
        return [result async for result in runner.run(AgentRunContext.model_validate(fields))]


async def test_assistant_of_the_guide_does_what_it_says(assistant: AgentRunner) -> None:
    host = PlayedHost()

    results = await run(assistant, host)

    assert [result.type for result in results] == [
        "tool.call.started",
        "tool.call.completed",
        "message.delta",
        "message.delta",
        "artifact.created",
        "run.completed",
    ]
    assert host.calls["call_tool"] == {"tool_name": "clock", "parameters": {"zone": "UTC"}}
    assert host.calls["state_set"] == {"scope": "conversation", "key": "turns", "value": 3}
    prompt: Any = host.calls["invoke_llm_stream"]["messages"]
    assert [message["content"] for message in prompt if "content" in message] == [
        "Hi",
        "Hello!",
        "What time is it?",
        '"12:00"',
    ]
    assert results[4].data["name"] == "answer-3.txt"


async def test_assistant_of_the_guide_reports_what_it_may_not(assistant: AgentRunner) -> None:
    error = AgentAPIError(code="unauthorized", message="taken back")

    results = await run(assistant, PlayedHost(call_tool=AgentAPIException(error)))

    assert results[-1].type == "run.failed"
    assert (results[-1].data["code"], results[-1].data["error"]) == ("assistant.unauthorized", "taken back")


def test_every_host_method_is_described_with_its_parameters() -> None:
    rows = [row for row in page("docs/runners.md").splitlines() if row.startswith("| `")]
    described: dict[str, str] = {}
    for row in rows:
        described |= dict(re.findall(r"`(\w+)\(([^)]*)\)`", row.split(" | ")[0]))

    assert HOST_METHODS.keys() - described.keys() == set()
    for method in HOST_METHODS:
        if described[method] == "...":
            continue
        parameters = list(inspect.signature(getattr(AgentRunAPIProxy, method)).parameters.values())[1:]
        assert described[method] == ", ".join(_as_written(parameter) for parameter in parameters), method


def _as_written(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    default = f'"{parameter.default}"' if isinstance(parameter.default, str) else parameter.default
    return f"{parameter.name}={default}"


async def test_clients_of_the_guide_follow_a_run(live_host: LiveHost, capsys: pytest.CaptureFixture[str]) -> None:
    """Both examples of docs/api.md, with a new agent in the place of `echo`."""
    agent_id = uuid.uuid4().hex
    async with RunhostClient(live_host.url, live_host.key) as client:
        await client.put_agent(agent_id, AgentConfig(runner_id=SCRIPTED))
    statuses: list[str] = []
    for example in blocks(page("docs/api.md"), "python"):
        scope: dict[str, Any] = {}
        exec(example.replace('"echo"', repr(agent_id)), scope)  # noqa: S102 - it is our own guide
        ask, arguments = scope["ask"], (live_host.url, live_host.key, "Hello")
        is_async = inspect.iscoroutinefunction(ask)
        statuses.append(await ask(*arguments) if is_async else await asyncio.to_thread(ask, *arguments))

    assert statuses == ["completed", "completed"]
    assert capsys.readouterr().out.count("host.run_ended") == 2
