"""Runs of the openai-chat runner without a host."""

from pathlib import Path
from typing import Any

from runhost.protocol import (
    AgentInput,
    AgentRunContext,
    AgentRunResult,
    JsonObject,
    MessageCompletedData,
    MessageDeltaData,
)
from runners.manifest import MANIFEST_FILE, load_manifest
from runners.official.openai_chat import runner as runner_module
from runners.official.openai_chat.runner import OpenAIChatRunner
from tests.fixtures.openai_stub import MODEL, OpenAIStub
from tests.runners.contexts import run_context

MANIFEST = load_manifest(Path(runner_module.__file__).parent / MANIFEST_FILE).discovery.manifest


def config_for(stub: OpenAIStub, **changes: Any) -> JsonObject:
    return {"base_url": stub.base_url, "model": MODEL, "timeout": 10, **changes}


def chat_context(
    config: JsonObject, agent_input: AgentInput | None = None, *, deadline_at: float | None = None
) -> AgentRunContext:
    context = run_context("What is durable?", config)
    changes: dict[str, object] = {
        "input": agent_input or context.input,
        "runtime": context.runtime.model_copy(update={"deadline_at": deadline_at}),
    }
    return context.model_copy(update=changes)


async def run_chat(
    config: JsonObject, agent_input: AgentInput | None = None, *, deadline_at: float | None = None
) -> list[AgentRunResult]:
    runner = OpenAIChatRunner()
    runner.manifest = MANIFEST
    context = chat_context(config, agent_input, deadline_at=deadline_at)
    return [result async for result in runner.run(context)]


async def failure_of(
    config: JsonObject, agent_input: AgentInput | None = None, *, deadline_at: float | None = None
) -> JsonObject:
    """Run, check that the run fails without a completed message, and return the data of the failure."""
    *before, end = await run_chat(config, agent_input, deadline_at=deadline_at)
    assert {result.type for result in before} <= {"message.delta"}
    assert end.type == "run.failed"
    return end.data


def text_of(result: AgentRunResult) -> object:
    """Return the text of a delta or of a completed message."""
    if result.type == "message.delta":
        return MessageDeltaData.model_validate(result.data).chunk.content
    return MessageCompletedData.model_validate(result.data).message.content
