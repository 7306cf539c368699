"""`kill -9` of a worker in the middle of an answer of the example assistant, in both of its forms."""

import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.stack import HEARTBEAT_TIMEOUT_SECONDS, Stack
from tests.eventually import eventually
from tests.examples.assistant import IN_PROCESS, SEPARATE, Hanging, in_turn, processes_in, says
from tests.fixtures.openai_stub import OpenAIStub


@pytest.mark.parametrize("runner_id", [IN_PROCESS, SEPARATE], ids=["in-process", "separate"])
async def test_killed_worker_leaves_no_runner_and_another_answers(
    stack: Stack, openai_stub: OpenAIStub, runner_id: str
) -> None:
    """P-29, INV-8, F-16: nothing of the first attempt goes on, neither process nor model."""
    hanging = Hanging()
    openai_stub.behave = in_turn(hanging, says("Here ", "again."))
    run_id = await _ask(stack, openai_stub, runner_id)
    await stack.streaming(run_id)
    killed, folder = await stack.worker_of(run_id), Path(stack.directory.path) / "assistant-apart"
    assert bool(processes_in(folder)) == (runner_id == SEPARATE)

    os.kill(killed, signal.SIGKILL)

    await eventually(lambda: not processes_in(folder))
    await eventually(lambda: hanging.left == 1)
    run = await stack.ended(run_id)
    assert (run["status"], run["current_attempt"]) == ("completed", 2)
    attempts = (await stack.request("GET", f"/v1/runs/{run_id}/attempts"))["items"]
    assert [(attempt["attempt"], attempt["outcome"]) for attempt in attempts] == [(1, "lost"), (2, "completed")]
    items = (await stack.request("GET", f"/v1/conversations/{run['conversation_id']}/transcript"))["items"]
    assert [(item["role"], item["content"]) for item in items] == [("assistant", "Here again."), ("user", "Hello")]
    assert processes_in(folder) == {}
    await stack.add_worker()


async def _ask(stack: Stack, stub: OpenAIStub, runner_id: str) -> str:
    """Make an agent of the assistant and say hello to it; returns the run."""
    name = uuid.uuid4().hex
    await stack.request("PUT", f"/v1/models/{name}", json={"base_url": stub.base_url, "model_name": "stub-model"})
    agent: dict[str, Any] = {
        "runner_id": runner_id,
        "runner_config": {"model": {"primary": name, "fallbacks": []}},
        "heartbeat_timeout_seconds": HEARTBEAT_TIMEOUT_SECONDS,
    }
    await stack.request("PUT", f"/v1/agents/{name}", json=agent)
    order = {
        "agent_id": name,
        "event_type": "message.received",
        "conversation_id": name,
        "input": {"text": "Hello"},
        "delivery": {"surface": "test", "supports_streaming": True},
    }
    return (await stack.request("POST", "/v1/runs", json=order))["run_id"]
