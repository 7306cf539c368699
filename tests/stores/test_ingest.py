"""One event leads to at most one run."""

import asyncio

import pytest
from sqlalchemy import func, select

from stores.agents import AgentStore
from stores.bindings import BindingStore
from stores.errors import AgentNotFound, EventConflict
from stores.ingest import Ingest
from stores.tables import agent_run, artifact, event_log, transcript
from tests.fixtures.host import WORKSPACE, Host, make_envelope


async def count(host: Host, table: object) -> int:
    async with host.engine.connect() as connection:
        return await connection.scalar(select(func.count()).select_from(table))  # type: ignore[arg-type]


async def bind(host: Host, binding_id: str, agent_id: str, **changes: object) -> None:
    fields = {
        "binding_id": binding_id,
        "agent_id": agent_id,
        "scope_type": "workspace",
        "scope_id": None,
        "event_types": ["message.received"],
        "priority": 0,
        "enabled": True,
    }
    async with host.engine.begin() as connection:
        await BindingStore(connection, WORKSPACE).put(fields | changes)


async def test_inv_2_redelivery_answers_with_the_first_run(host: Host) -> None:
    await host.put_agent()
    envelope = make_envelope()
    first, second = await host.accept(envelope), await host.accept(envelope)
    assert first.run_id == second.run_id
    assert not first.is_duplicate
    assert second.is_duplicate
    assert second.new_run is None
    assert await count(host, agent_run) == 1


async def test_inv_2_simultaneous_deliveries_lead_to_one_run(host: Host) -> None:
    await host.put_agent()
    envelope = make_envelope()
    accepted = await asyncio.gather(*(host.accept(envelope) for _ in range(8)))
    assert len({one.run_id for one in accepted}) == 1
    assert [one.new_run is not None for one in accepted].count(True) == 1
    assert await count(host, agent_run) == await count(host, event_log) == await count(host, transcript) == 1


async def test_inv_2_other_content_under_the_same_id_is_a_conflict(host: Host) -> None:
    await host.put_agent()
    await host.accept(make_envelope(event_id="e1"))
    with pytest.raises(EventConflict):
        await host.accept(make_envelope(event_id="e1", input={"text": "something else"}))
    assert await count(host, agent_run) == 1


async def test_event_without_binding_is_logged_and_ignored(host: Host) -> None:
    accepted = await host.accept()
    assert (accepted.disposition, accepted.run_id) == ("ignored", None)
    assert await count(host, event_log) == 1


async def test_first_outcome_stands_although_a_binding_came_later(host: Host) -> None:
    envelope = make_envelope()
    await host.accept(envelope)
    await host.put_agent()
    again = await host.accept(envelope)
    assert (again.disposition, again.is_duplicate) == ("ignored", True)


async def test_two_equal_bindings_are_ambiguous_and_start_nothing(host: Host) -> None:
    await host.put_agent("a1")
    await host.put_agent("a2")
    envelope = make_envelope()
    accepted = await host.accept(envelope)
    assert accepted.disposition == "binding_ambiguous"
    assert accepted.outcome == {"binding_ids": ["to-a1", "to-a2"]}
    assert (await host.accept(envelope)).disposition == "binding_ambiguous"
    assert await count(host, agent_run) == 0


async def test_binding_of_the_bot_beats_the_workspace(host: Host) -> None:
    await host.put_agent("everywhere")
    await host.put_agent("for-bot", bind=False)
    await bind(host, "bot", "for-bot", scope_type="bot", scope_id="b1")
    assert (await host.accept()).new_run.agent_id == "for-bot"  # type: ignore[union-attr]
    other = await host.accept(make_envelope(bot_id="b2"))
    assert other.new_run.agent_id == "everywhere"  # type: ignore[union-attr]


async def test_priority_decides_within_a_level(host: Host) -> None:
    await host.put_agent("a1")
    await host.put_agent("a2", bind=False)
    await bind(host, "high", "a2", priority=5)
    assert (await host.accept()).new_run.agent_id == "a2"  # type: ignore[union-attr]


async def test_disabled_agent_is_no_candidate(host: Host) -> None:
    await host.put_agent(enabled=False)
    assert (await host.accept()).disposition == "ignored"


async def test_explicit_run_needs_an_agent_of_the_workspace(host: Host) -> None:
    async with host.engine.begin() as connection:
        with pytest.raises(AgentNotFound):
            await Ingest(connection, WORKSPACE).accept_run(make_envelope(), "nobody", {})
    assert await count(host, event_log) == 0


async def test_run_keeps_the_version_of_its_agent(host: Host) -> None:
    run = await host.new_run([{"message": "one"}])
    await host.put_agent(script=[{"message": "two"}])
    async with host.engine.connect() as connection:
        current = await AgentStore(connection, WORKSPACE).get("a1")
        used = await AgentStore(connection, WORKSPACE).get("a1", run.agent_version)
    assert (used.version, current.version) == (1, 2)
    assert used.config.runner_config == {"script": [{"message": "one"}]}


async def test_same_config_again_makes_no_new_version(host: Host) -> None:
    await host.put_agent(script=[])
    await host.put_agent(script=[])
    async with host.engine.connect() as connection:
        assert (await AgentStore(connection, WORKSPACE).get("a1")).version == 1


async def test_inline_base64_becomes_an_artifact_and_never_reaches_log_or_transcript(host: Host) -> None:
    """PM-13."""
    await host.put_agent()
    contents = [{"type": "text", "text": "look"}, {"type": "image_base64", "image_base64": "aGVsbG8="}]
    await host.accept(make_envelope(input={"contents": contents}))
    item = (await host.transcript())[0]
    assert item.content == "look"
    assert item.content_json["content"][1] == {
        "type": "image_base64",
        "image_base64": None,
        "content_redacted": True,
    }
    assert len(item.artifact_refs) == 1
    assert await count(host, artifact) == 1
    async with host.engine.connect() as connection:
        logged = await connection.scalar(select(event_log.c.envelope))
    assert "aGVsbG8=" not in str(logged)


async def test_text_postgres_cannot_hold_comes_back_as_sent(host: Host) -> None:
    """D-31."""
    await host.put_agent()
    sent = "a\x00b\ud800c"
    await host.accept(make_envelope(input={"text": sent}))
    assert (await host.transcript())[0].content == sent
