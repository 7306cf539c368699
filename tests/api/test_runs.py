"""Runs by request: created once, listed, read, cancelled."""

import asyncio
from uuid import UUID

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from runhost.protocol import RunStatus, workflow_id_for
from stores.notifications import CONTROL_CHANNEL, Listener
from tests.api.conftest import Host, NewHost
from tests.eventually import eventually
from workflows.client import connect


async def test_inv_1_created_run_is_there_and_started(host: Host, temporal_client: Client) -> None:
    await host.agent()
    answer = await host.client.post(
        "/v1/runs", json={"agent_id": "echo", "input": {"text": "hi"}, "conversation_id": "c1", "metadata": {"a": 1}}
    )
    assert answer.status_code == 201
    run = answer.json()
    assert answer.headers["location"] == f"/v1/runs/{run['run_id']}"
    assert (run["status"], run["agent_version"], run["metadata"]) == ("created", 1, {"a": 1})
    assert (await host.client.get(answer.headers["location"])).json() == run
    logged = (await host.client.get(f"/v1/events/{run['event_id']}")).json()
    assert (logged["event_type"], logged["source"], logged["input_summary"]) == ("api.invoked", "api", "hi")
    handle = temporal_client.get_workflow_handle(workflow_id_for(run["run_id"]))
    assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING


async def test_run_of_another_event_type(host: Host) -> None:
    run = await host.run(event_type="schedule.triggered", data={"due": "now"})
    assert (await host.client.get(f"/v1/events/{run['event_id']}")).json()["event_type"] == "schedule.triggered"


async def test_run_of_an_unknown_agent_is_not_found(host: Host) -> None:
    answer = await host.client.post("/v1/runs", json={"agent_id": "nobody"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "'nobody'" in answer.json()["detail"]


async def test_run_keeps_the_version_it_was_created_with(host: Host) -> None:
    first = await host.run()
    await host.agent(runner_config={"changed": True})
    assert (await host.client.post("/v1/runs", json={"agent_id": "echo"})).json()["agent_version"] == 2
    assert (await host.client.get(f"/v1/runs/{first['run_id']}")).json()["agent_version"] == 1


class TestIdempotencyKey:
    async def test_inv_2_repeat_is_answered_like_the_first(self, host: Host) -> None:
        await host.agent()
        headers = {"Idempotency-Key": "k"}
        first = await host.client.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)
        again = await host.client.post("/v1/runs", json={"agent_id": "echo", "input": {}}, headers=headers)
        assert (again.status_code, again.json()) == (201, first.json())
        assert again.headers["idempotent-replayed"] == "true"
        assert again.headers["location"] == first.headers["location"]
        assert len((await host.client.get("/v1/runs")).json()["items"]) == 1

    async def test_inv_2_other_body_under_the_key_is_refused(self, host: Host) -> None:
        await host.agent()
        headers = {"Idempotency-Key": "k"}
        await host.client.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)
        answer = await host.client.post("/v1/runs", json={"agent_id": "echo", "bot_id": "b"}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")

    async def test_other_operation_under_the_key_is_refused(self, host: Host) -> None:
        run = await host.run()
        headers = {"Idempotency-Key": "k"}
        await host.client.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)
        answer = await host.client.post(f"/v1/runs/{run['run_id']}/cancel", headers=headers)
        assert answer.json()["code"] == "idempotency_key_reused"

    async def test_inv_2_concurrent_repeats_create_one_run(self, host: Host, replica: Host) -> None:
        await host.agent()
        answers = await asyncio.gather(
            *(
                one.client.post("/v1/runs", json={"agent_id": "echo"}, headers={"Idempotency-Key": "k"})
                for one in (host, replica)
                for _ in range(5)
            )
        )
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len({answer.json()["run_id"] for answer in answers if answer.status_code == 201}) == 1
        assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_key_in_use"}
        assert len((await host.client.get("/v1/runs")).json()["items"]) == 1

    async def test_failed_request_leaves_the_key_free(self, host: Host) -> None:
        headers = {"Idempotency-Key": "k"}
        assert (await host.client.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)).status_code == 404
        await host.agent()
        assert (await host.client.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)).status_code == 201

    async def test_key_of_another_workspace_is_another_key(self, host: Host) -> None:
        headers = {"Idempotency-Key": "k"}
        foreign = await host.stranger()
        await host.agent()
        await host.agent(client=foreign)
        first = await host.client.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)
        second = await foreign.post("/v1/runs", json={"agent_id": "echo"}, headers=headers)
        assert first.json()["run_id"] != second.json()["run_id"]

    async def test_key_that_is_too_long_is_named(self, host: Host) -> None:
        answer = await host.client.post("/v1/runs", json={"agent_id": "a"}, headers={"Idempotency-Key": "k" * 256})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "Idempotency-Key"


class TestList:
    async def test_pages_are_newest_first_without_overlap(self, host: Host) -> None:
        created = [(await host.run())["run_id"] for _ in range(5)]
        seen, cursor = [], None
        while True:
            params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await host.client.get("/v1/runs", params=params)).json()
            seen += [run["run_id"] for run in page["items"]]
            cursor = page["next_cursor"]
            assert page["has_more"] == (cursor is not None)
            if cursor is None:
                break
        assert seen == created[::-1]

    async def test_runs_are_filtered(self, host: Host) -> None:
        first = await host.run(conversation_id="c1", bot_id="b1")
        second = await host.run(conversation_id="c2")
        await host.writer(second["run_id"])

        async def found(**query: str) -> list[str]:
            page = (await host.client.get("/v1/runs", params=query)).json()
            return [run["run_id"] for run in page["items"]]

        assert await found(conversation_id="c1") == await found(bot_id="b1") == [first["run_id"]]
        assert await found(status="running") == [second["run_id"]]
        assert await found(status="failed") == await found(agent_id="x") == await found(runner_id="x") == []
        assert await found(created_after=second["created_at"]) == [second["run_id"]]
        assert await found(created_before=second["created_at"]) == [first["run_id"]]

    async def test_limit_over_200_is_200(self, host: Host) -> None:
        assert (await host.client.get("/v1/runs", params={"limit": 100_000})).status_code == 200

    async def test_cursor_of_another_query_is_refused(self, host: Host) -> None:
        for _ in range(2):
            await host.run(conversation_id="c1")
        page = (await host.client.get("/v1/runs", params={"limit": 1})).json()
        for query in ({"conversation_id": "c1"}, {"status": "created"}):
            answer = await host.client.get("/v1/runs", params=query | {"cursor": page["next_cursor"]})
            assert (answer.status_code, answer.json()["code"]) == (400, "cursor_invalid")
            assert answer.json()["errors"][0]["field"] == "cursor"
        same = await host.client.get("/v1/runs", params={"limit": 7, "cursor": page["next_cursor"]})
        assert len(same.json()["items"]) == 1

    async def test_cursor_is_good_at_every_replica(self, host: Host, replica: Host) -> None:
        for _ in range(2):
            await host.run()
        page = (await host.client.get("/v1/runs", params={"limit": 1})).json()
        assert (await replica.client.get("/v1/runs", params={"cursor": page["next_cursor"]})).status_code == 200


class TestLedgerPages:
    async def test_pages_go_forward_and_can_be_followed(self, host: Host) -> None:
        run = await host.run()
        writer = await host.writer(run["run_id"])
        await writer.deltas(4)
        path = f"/v1/runs/{run['run_id']}/events"
        first = (await host.client.get(path, params={"limit": 3})).json()
        assert ([row["sequence"] for row in first["items"]], first["has_more"]) == ([1, 2, 3], True)
        second = (await host.client.get(path, params={"limit": 3, "cursor": first["next_cursor"]})).json()
        assert ([row["sequence"] for row in second["items"]], second["has_more"]) == ([4, 5], False)
        empty = (await host.client.get(path, params={"limit": 3, "cursor": second["next_cursor"]})).json()
        assert (empty["items"], empty["next_cursor"]) == ([], second["next_cursor"])
        await writer.complete()
        rest = (await host.client.get(path, params={"limit": 3, "cursor": empty["next_cursor"]})).json()
        assert [row["sequence"] for row in rest["items"]] == [6, 7]

    async def test_pages_go_backward_on_request(self, host: Host) -> None:
        run = await host.run()
        await (await host.writer(run["run_id"])).deltas(2)
        path = f"/v1/runs/{run['run_id']}/events"
        first = (await host.client.get(path, params={"limit": 2, "order": "desc"})).json()
        assert [row["sequence"] for row in first["items"]] == [3, 2]
        query = {"limit": 2, "order": "desc", "cursor": first["next_cursor"]}
        second = (await host.client.get(path, params=query)).json()
        assert ([row["sequence"] for row in second["items"]], second["next_cursor"]) == ([1], None)

    async def test_cursor_of_another_run_is_refused(self, host: Host) -> None:
        paths = []
        for _ in range(2):
            run = await host.run()
            await host.writer(run["run_id"])
            paths.append(f"/v1/runs/{run['run_id']}/events")
        cursor = (await host.client.get(paths[0])).json()["next_cursor"]
        assert (await host.client.get(paths[1], params={"cursor": cursor})).json()["code"] == "cursor_invalid"

    async def test_rows_are_told_apart_by_who_wrote_them(self, host: Host) -> None:
        run = await host.run()
        await (await host.writer(run["run_id"])).deltas(1)
        rows = (await host.client.get(f"/v1/runs/{run['run_id']}/events")).json()["items"]
        assert [(row["source"], row["source_sequence"], row["attempt"]) for row in rows] == [
            ("host", None, 1),
            ("runner", 1, 1),
        ]
        assert rows[0]["created_at"].endswith("Z")


async def test_attempts_are_listed_in_order(host: Host) -> None:
    run = await host.run()
    path = f"/v1/runs/{run['run_id']}/attempts"
    assert (await host.client.get(path)).json()["items"] == []
    writer = await host.writer(run["run_id"])
    await writer.complete()
    attempts = (await host.client.get(path)).json()["items"]
    assert [(attempt["attempt"], attempt["outcome"]) for attempt in attempts] == [(1, "completed")]
    assert attempts[0]["started_at"].endswith("Z")


class TestCancel:
    async def test_cancel_reaches_workflow_ledger_and_worker(self, host: Host, temporal_client: Client) -> None:
        run = await host.run()
        heard: list[str] = []
        async with Listener(host.dependencies.database_url, {CONTROL_CHANNEL: heard.append}, lambda: None) as listener:
            await listener.connected()
            answer = await host.client.post(f"/v1/runs/{run['run_id']}/cancel", json={"reason": "no need"})
            assert answer.status_code == 202
            assert answer.json()["cancel_requested_at"] is not None
            await eventually(lambda: heard == [f"cancel:{run['run_id']}"])
        rows = (await host.client.get(f"/v1/runs/{run['run_id']}/events")).json()["items"]
        assert [(row["type"], row["data"]) for row in rows] == [("host.cancel_requested", {"reason": "no need"})]
        handle = temporal_client.get_workflow_handle(workflow_id_for(run["run_id"]))
        history = await handle.fetch_history()
        assert any(entry.HasField("workflow_execution_cancel_requested_event_attributes") for entry in history.events)

    async def test_asking_again_changes_nothing(self, host: Host) -> None:
        run = await host.run()
        first = await host.client.post(f"/v1/runs/{run['run_id']}/cancel")
        again = await host.client.post(f"/v1/runs/{run['run_id']}/cancel", json={"reason": "really"})
        assert (again.status_code, again.json()) == (202, first.json())

    async def test_run_that_was_never_started_takes_a_cancel(self, new_host: NewHost) -> None:
        away = await new_host(temporal=await connect("127.0.0.1:1", lazy=True), start_timeout_seconds=0.2)
        run = await away.run()
        host = await new_host()
        host.workspace = away.workspace
        answer = await (await host.caller()).post(f"/v1/runs/{run['run_id']}/cancel")
        assert (answer.status_code, answer.json()["cancel_requested_at"] is None) == (202, False)

    async def test_nothing_is_written_while_temporal_is_away(self, new_host: NewHost) -> None:
        host = await new_host(temporal=await connect("127.0.0.1:1", lazy=True), start_timeout_seconds=0.2)
        run = await host.run()
        answer = await host.client.post(f"/v1/runs/{run['run_id']}/cancel", headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["code"]) == (503, "engine_unavailable")
        assert answer.json()["retryable"] is True
        assert int(answer.headers["retry-after"]) > 0
        read = (await host.client.get(f"/v1/runs/{run['run_id']}")).json()
        assert (read["cancel_requested_at"], read["last_sequence"]) == (None, 0)

    async def test_ended_run_is_a_conflict(self, host: Host) -> None:
        run = await host.run()
        await (await host.writer(run["run_id"])).settle(RunStatus.FAILED)
        answer = await host.client.post(f"/v1/runs/{run['run_id']}/cancel")
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["run_id"]) == (409, "run_terminal", run["run_id"])
        assert "'failed'" in problem["detail"]

    async def test_replayed_cancel_is_answered_like_the_first(self, host: Host) -> None:
        run = await host.run()
        path, headers = f"/v1/runs/{run['run_id']}/cancel", {"Idempotency-Key": "k"}
        first = await host.client.post(path, headers=headers)
        again = await host.client.post(path, headers=headers)
        assert (again.status_code, again.json()) == (202, first.json())
        assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    "run_id",
    [str(UUID(int=0)), "none", "1", "0" * 300, "x-y", "{}"],
    ids=["unknown", "word", "number", "long", "letters", "braces"],
)
async def test_unknown_run_is_not_found(host: Host, run_id: str) -> None:
    answer = await host.client.get(f"/v1/runs/{run_id}")
    assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")


async def test_run_id_is_read_in_one_form_only(host: Host) -> None:
    run = await host.run()
    assert (await host.client.get(f"/v1/runs/{run['run_id'].replace('-', '')}")).status_code == 404
