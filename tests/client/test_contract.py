"""The client against the real API: what the stub of the other tests plays is what the host says."""

import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from runhost.client import ApiProblem, BindingRequest, BindingScope, RunFilter, RunhostClient, RunRequest
from runhost.protocol import AgentConfig, AgentEventEnvelope, AgentInput, AgentRunEvent, JsonValue, RunStatus
from tests.client.stub import FAST
from tests.fixtures.host import SCRIPTED
from tests.fixtures.live_host import LiveHost


@pytest.fixture
async def client(live_host: LiveHost) -> AsyncIterator[RunhostClient]:
    async with RunhostClient(live_host.url, live_host.key, retry=FAST) as client:
        yield client


@pytest.fixture
def agent_id() -> str:
    """An id of this test, with everything that an id may hold."""
    return f"agent/{uuid.uuid4().hex} ?#%你"


async def put_agent(client: RunhostClient, agent_id: str, script: list[JsonValue] | None = None) -> None:
    config: dict[str, Any] = {} if script is None else {"script": script}
    await client.put_agent(agent_id, AgentConfig(runner_id=SCRIPTED, runner_config=config))


def envelope(agent_id: str, text: str = "hello wide world", **more: Any) -> AgentEventEnvelope:
    """Return a message for the bot that is named like the agent."""
    fields: dict[str, Any] = {
        "event_id": uuid.uuid4().hex,
        "event_type": "message.received",
        "source": "platform",
        "bot_id": agent_id,
        "conversation_id": agent_id,
        "input": {"text": text},
        "delivery": {"surface": "test"},
    }
    return AgentEventEnvelope.model_validate(fields | more)


async def follow(client: RunhostClient, run_id: str, after: int = 0) -> list[AgentRunEvent]:
    return [event async for event in client.follow_run(run_id, after=after)]


async def bind(client: RunhostClient, agent_id: str) -> None:
    scope = BindingScope(scope_type="bot", scope_id=agent_id)
    await client.put_binding(agent_id, BindingRequest(agent_id=agent_id, scope=scope))


async def test_message_becomes_a_run_that_is_followed_to_its_end(client: RunhostClient, agent_id: str) -> None:
    await put_agent(client, agent_id)
    await bind(client, agent_id)
    message = envelope(agent_id)

    receipt = await client.send_event(message)
    assert receipt.run_id is not None
    events = await follow(client, receipt.run_id)
    run = await client.get_run(receipt.run_id)

    assert receipt.disposition == "run_started"
    assert [event.sequence for event in events] == list(range(1, run.last_sequence + 1))
    assert [event.type for event in events if event.source == "runner"] == [
        *["message.delta"] * 3,
        "message.completed",
        "run.completed",
    ]
    assert (run.status, run.agent_id, run.bot_id, run.event_id) == ("completed", agent_id, agent_id, message.event_id)
    again = await client.send_event(message)
    assert (again.disposition, again.original_disposition, again.run_id) == ("duplicate", "run_started", run.run_id)
    transcript = await client.transcript(agent_id)
    assert [(item.role, item.content) for item in transcript.items] == [
        ("assistant", "hello wide world"),
        ("user", "hello wide world"),
    ]
    assert transcript.items[0].created_at is not None


async def test_ledger_pages_hold_what_the_stream_holds(client: RunhostClient, agent_id: str) -> None:
    usage: JsonValue = {"prompt_tokens": 3, "completion_tokens": 4}
    script: list[JsonValue] = [
        {"delta": "lone \ud800 and \0"},
        {"artifact": {"text": "content", "name": "a.txt"}},
        {"message": "done"},
        {"completed": {"finish_reason": "stop", "usage": usage}},
    ]
    await put_agent(client, agent_id, script)
    run = await client.create_run(RunRequest(agent_id=agent_id, input=AgentInput(text="go")))

    streamed = await follow(client, run.run_id)
    paged: list[AgentRunEvent] = []
    cursor, has_more = None, True
    while has_more:
        page = await client.run_events(run.run_id, limit=3, cursor=cursor)
        paged += page.items
        cursor, has_more = page.next_cursor, page.has_more

    assert paged == streamed
    assert streamed[1].data["chunk"]["content"] == "lone \ud800 and \0"  # type: ignore[index]
    total = (await client.get_run(run.run_id)).usage
    assert total is not None
    assert total.total_tokens == 7
    assert await follow(client, run.run_id, after=3) == streamed[3:]
    assert await follow(client, run.run_id, after=len(streamed)) == []


async def test_run_is_cancelled_while_it_is_followed(client: RunhostClient, agent_id: str) -> None:
    await put_agent(client, agent_id, [{"delta": "a"}, {"silence": True}])
    run = await client.create_run(RunRequest(agent_id=agent_id, conversation_id=agent_id))

    types: list[str] = []
    async with aclosing(client.follow_run(run.run_id)) as events:
        async for event in events:
            types.append(event.type)
            if event.type == "message.delta":
                await client.cancel_run(run.run_id, reason="enough")

    assert types[-1] == "host.run_ended"
    ended = await client.get_run(run.run_id)
    assert ended.status == RunStatus.CANCELLED
    [attempt] = (await client.attempts(run.run_id)).items
    assert attempt.outcome == "cancelled"
    with pytest.raises(ApiProblem) as refusal:
        await client.cancel_run(run.run_id)
    assert (refusal.value.status, refusal.value.code) == (409, "run_terminal")
    listed = await client.list_runs(RunFilter(status=RunStatus.CANCELLED, conversation_id=agent_id))
    assert [run.run_id for run in listed.items] == [run.run_id]


async def test_same_key_creates_one_run(client: RunhostClient, agent_id: str) -> None:
    await put_agent(client, agent_id)
    request = RunRequest(agent_id=agent_id, input=AgentInput(text="x"), metadata={"n": 1})

    first = await client.create_run(request, idempotency_key=agent_id.encode().hex())
    second = await client.create_run(request, idempotency_key=agent_id.encode().hex())

    assert first.run_id == second.run_id


async def test_agents_and_bindings_come_back_as_put(client: RunhostClient, agent_id: str) -> None:
    for text in ("one", "two"):
        await put_agent(client, agent_id, [{"message": text}])
    await bind(client, agent_id)

    agent = await client.get_agent(agent_id)
    assert (agent.version, agent.config.runner_config) == (2, {"script": [{"message": "two"}]})
    assert agent_id in [found.agent_id for found in (await client.list_agents(limit=200)).items]
    [binding] = [found for found in (await client.list_bindings(limit=200)).items if found.binding_id == agent_id]
    assert binding.scope == BindingScope(scope_type="bot", scope_id=agent_id)
    # What was read can be put.
    assert (await client.put_agent(agent_id, agent.config)).version == 2


async def test_runners_are_listed_with_their_forms(client: RunhostClient) -> None:
    found = {runner.descriptor.id: runner for runner in (await client.runners()).items}

    assert [item["name"] for item in found[SCRIPTED].descriptor.config_schema] == ["script", "timeout"]
    assert not found[SCRIPTED].is_stale


@pytest.mark.parametrize("run_id", ["nonsense", "01980000-0000-7000-8000-000000000001", "."])
async def test_unknown_run_is_a_problem(client: RunhostClient, run_id: str) -> None:
    with pytest.raises(ApiProblem) as refusal:
        await client.get_run(run_id)
    with pytest.raises(ApiProblem, match="run_not_found"):
        await follow(client, run_id)

    assert (refusal.value.status, refusal.value.code) == (404, "run_not_found")


async def test_wrong_key_is_a_problem(live_host: LiveHost) -> None:
    async with RunhostClient(live_host.url, "rh_wrong", retry=FAST) as client:
        with pytest.raises(ApiProblem, match="unauthorized"):
            await client.runners()


async def test_fields_at_fault_are_named(client: RunhostClient, agent_id: str) -> None:
    await put_agent(client, agent_id)

    with pytest.raises(ApiProblem) as refusal:
        await client.create_run(RunRequest(agent_id=agent_id, data={"big": "x" * 70_000}))

    assert [fault["field"] for fault in refusal.value.errors] == ["data"]
