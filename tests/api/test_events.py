"""Posting events: what is answered with 202 is committed, and one event leads to at most one run."""

import asyncio
import json

import pytest
from sqlalchemy import Table, func, select
from temporalio.client import Client

from runhost.protocol import workflow_id_for
from stores.tables import agent_run, event_log
from tests.api.conftest import Host, NewHost, event
from tests.eventually import eventually
from workflows.client import connect


async def rows(host: Host, table: Table) -> int:
    """Count the rows of the host's workspace."""
    count = select(func.count()).select_from(table).where(table.c.workspace_id == host.workspace)
    async with host.engine.connect() as connection:
        return await connection.scalar(count) or 0


@pytest.fixture
async def bound(host: Host) -> Host:
    """A host with one agent for all messages."""
    await host.agent()
    await host.binding()
    return host


async def test_bound_event_starts_a_run(bound: Host, temporal_client: Client) -> None:
    answer = await bound.client.post("/v1/events", json=event())
    assert answer.status_code == 202
    receipt = answer.json()
    assert (receipt["event_id"], receipt["disposition"]) == ("e1", "run_started")
    run = (await bound.client.get(f"/v1/runs/{receipt['run_id']}")).json()
    assert (run["event_id"], run["binding_id"], run["status"]) == ("e1", "all", "created")
    described = await temporal_client.get_workflow_handle(workflow_id_for(run["run_id"])).describe()
    assert described.task_queue == bound.dependencies.task_queue


async def test_inv_1_accepted_event_is_there_for_everyone_at_once(bound: Host, replica: Host) -> None:
    for number in range(20):
        receipt = (await bound.client.post("/v1/events", json=event(f"e{number}"))).json()
        assert (await replica.client.get(f"/v1/runs/{receipt['run_id']}")).status_code == 200
        assert (await replica.client.get(f"/v1/events/e{number}")).json()["run_id"] == receipt["run_id"]


async def test_inv_1_event_is_accepted_while_temporal_is_away(new_host: NewHost) -> None:
    host = await new_host(temporal=await connect("127.0.0.1:1", lazy=True), start_timeout_seconds=0.3)
    await host.agent()
    await host.binding()
    answer = await host.client.post("/v1/events", json=event())
    assert answer.status_code == 202
    run = (await host.client.get(f"/v1/runs/{answer.json()['run_id']}")).json()
    assert run["status"] == "created"


async def test_inv_1_client_that_hangs_up_loses_nothing(bound: Host) -> None:
    """P-8: what was begun is finished, whether or not somebody waits for the answer."""
    posting = asyncio.create_task(bound.client.post("/v1/events", json=event()))
    accepting = bound.services.acceptance._pending
    await eventually(lambda: accepting)
    posting.cancel()
    await asyncio.gather(posting, return_exceptions=True)
    await eventually(lambda: not accepting)
    assert (await bound.client.get("/v1/events/e1")).json()["disposition"] == "run_started"


async def test_inv_2_redelivery_is_answered_with_the_first_outcome(bound: Host) -> None:
    first = (await bound.client.post("/v1/events", json=event())).json()
    again = await bound.client.post("/v1/events", json=event())
    assert again.status_code == 202
    assert again.json() == {
        "event_id": "e1",
        "disposition": "duplicate",
        "original_disposition": "run_started",
        "run_id": first["run_id"],
    }
    assert await rows(bound, agent_run) == await rows(bound, event_log) == 1


async def test_inv_2_concurrent_deliveries_lead_to_one_run(bound: Host, replica: Host) -> None:
    """F-11, F-21: on two replicas at once."""
    answers = await asyncio.gather(
        *(host.client.post("/v1/events", json=event()) for host in (bound, replica) for _ in range(10))
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    assert sorted(answer.json()["disposition"] for answer in answers) == ["duplicate"] * 19 + ["run_started"]
    assert await rows(bound, agent_run) == 1


async def test_inv_2_same_id_with_other_content_is_a_conflict(bound: Host) -> None:
    """F-23."""
    await bound.client.post("/v1/events", json=event())
    answer = await bound.client.post("/v1/events", json=event(input={"text": "other"}))
    assert (answer.status_code, answer.json()["code"]) == (409, "event_conflict")
    assert await rows(bound, agent_run) == 1


async def test_own_workspace_may_be_named_and_is_the_same_event(bound: Host) -> None:
    await bound.client.post("/v1/events", json=event())
    answer = await bound.client.post("/v1/events", json=event(workspace_id=bound.workspace))
    assert answer.json()["disposition"] == "duplicate"


async def test_other_workspace_is_refused(bound: Host) -> None:
    answer = await bound.client.post("/v1/events", json=event(workspace_id="other"))
    assert (answer.status_code, answer.json()["code"]) == (403, "unauthorized")
    assert await rows(bound, event_log) == 0


async def test_event_of_one_workspace_is_another_event_in_the_next(bound: Host) -> None:
    await bound.client.post("/v1/events", json=event())
    foreign = await bound.stranger()
    assert (await foreign.post("/v1/events", json=event())).json()["disposition"] == "ignored"


async def test_unbound_event_is_logged_and_says_what_to_do(host: Host) -> None:
    answer = await host.client.post("/v1/events", json=event(bot_id="b1"))
    receipt = answer.json()
    assert answer.status_code == 202
    assert (receipt["disposition"], receipt["reason"]) == ("ignored", "no_binding")
    assert "'message.received' from bot 'b1'" in receipt["detail"]
    assert "PUT /v1/bindings/" in receipt["detail"]
    assert (await host.client.get("/v1/events/e1")).json()["disposition"] == "ignored"
    again = (await host.client.post("/v1/events", json=event(bot_id="b1"))).json()
    assert (again["disposition"], again["original_disposition"]) == ("duplicate", "ignored")


async def test_ambiguous_event_is_logged_and_refused_each_time(bound: Host) -> None:
    await bound.binding("also-all")
    for _ in range(2):
        answer = await bound.client.post("/v1/events", json=event())
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (409, "binding_ambiguous")
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["binding_ids"] == ["all", "also-all"]
    assert (await bound.client.get("/v1/events/e1")).json()["disposition"] == "binding_ambiguous"
    assert await rows(bound, agent_run) == 0


async def test_key_with_the_same_event_replays_the_answer(bound: Host) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await bound.client.post("/v1/events", json=event(), headers=headers)
    again = await bound.client.post("/v1/events", json=event(), headers=headers)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers


async def test_text_that_postgres_cannot_hold_comes_back_as_it_was_sent(bound: Host) -> None:
    """D-31."""
    text = "nul \x00 lone \ud800 日本"
    content = event(input={"text": text}, metadata={"note": text}, actor={"actor_type": "user", "actor_name": "a\x00"})
    answer = await bound.client.post(
        "/v1/events", content=json.dumps(content), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 202, answer.text
    assert (await bound.client.get("/v1/events/e1")).json()["input_summary"] == text
    items = (await bound.client.get("/v1/conversations/c1/transcript")).json()["items"]
    assert items[0]["content"] == text


async def test_events_are_listed_newest_first_in_pages(bound: Host) -> None:
    for number in range(5):
        await bound.client.post("/v1/events", json=event(f"e{number}", conversation_id=f"c{number % 2}"))
    query = {"limit": 2, "conversation_id": "c0"}
    first = (await bound.client.get("/v1/events", params=query)).json()
    second = (await bound.client.get("/v1/events", params=query | {"cursor": first["next_cursor"]})).json()
    assert [item["event_id"] for item in first["items"] + second["items"]] == ["e4", "e2", "e0"]
    assert (first["has_more"], second["has_more"], second["next_cursor"]) == (True, False, None)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"event_type": "message.received"}, ["e1"]),
        ({"event_type": "message.recalled"}, []),
        ({"source": "platform"}, ["e1"]),
        ({"bot_id": "nobody"}, []),
    ],
)
async def test_events_are_filtered(bound: Host, query: dict[str, str], found: list[str]) -> None:
    await bound.client.post("/v1/events", json=event())
    page = (await bound.client.get("/v1/events", params=query)).json()
    assert [item["event_id"] for item in page["items"]] == found


async def test_event_id_may_hold_slashes(bound: Host) -> None:
    await bound.client.post("/v1/events", json=event("chat/1/2"))
    assert (await bound.client.get("/v1/events/chat%2F1%2F2")).json()["event_id"] == "chat/1/2"
