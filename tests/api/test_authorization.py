"""What a run may reach, read and taken back over HTTP (D-15)."""

from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from stores.notifications import LEDGER_CHANNEL
from stores.runs import RunStore
from tests.api.conftest import Host
from tests.eventually import eventually

RESOURCES = {
    "models": [{"model_id": "gpt", "operations": ["invoke"]}, {"model_id": "small", "operations": ["invoke"]}],
    "skills": [{"skill_name": "write"}],
}


@pytest.fixture
async def run_id(host: Host) -> str:
    """A prepared run with two models and a skill."""
    run = await host.run(conversation_id="c1")
    snapshot: dict[str, Any] = {
        "runner_id": run["runner_id"],
        "plugin_identity": "runhost/scripted",
        "resources": RESOURCES,
        "available_apis": {"history_page": True, "state": True},
        "workspace_id": host.workspace,
        "bot_id": None,
        "conversation_id": "c1",
        "thread_id": None,
        "state_policy": {"enable_state": True, "state_scopes": ["conversation"]},
        "state_context": {"scope_keys": {"conversation": "k"}, "binding_identity": "agent:echo"},
    }
    async with host.engine.begin() as connection:
        await RunStore(connection).freeze(UUID(run["run_id"]), authorization=snapshot, context={}, deadline_at=None)
    return run["run_id"]


async def read(host: Host, run_id: str) -> dict[str, Any]:
    answer = await host.client.get(f"/v1/runs/{run_id}/authorization")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def revoke(host: Host, run_id: str, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await host.client.post(f"/v1/runs/{run_id}/authorization/revoke", json=body, headers=headers)


async def ledger(host: Host, run_id: str) -> list[dict[str, Any]]:
    return (await host.client.get(f"/v1/runs/{run_id}/events")).json()["items"]


def models(part: dict[str, Any]) -> list[str]:
    return [model["model_id"] for model in part["resources"]["models"]]


async def test_run_that_is_not_prepared_has_nothing_to_show(host: Host) -> None:
    run_id = (await host.run())["run_id"]
    assert await read(host, run_id) == {"run_id": run_id, "snapshot": None, "revocations": [], "effective": None}


async def test_snapshot_is_shown_beside_what_is_left(host: Host, run_id: str) -> None:
    before = await read(host, run_id)
    assert models(before["snapshot"]) == models(before["effective"]) == ["gpt", "small"]
    answer = await revoke(host, run_id, kind="model", id="gpt", reason="too dear")
    assert answer.status_code == 200, answer.text
    after = answer.json()
    assert after == await read(host, run_id)
    assert after["snapshot"] == before["snapshot"]
    assert models(after["effective"]) == ["small"]
    (entry,) = after["revocations"]
    assert entry.pop("revoked_at")
    assert entry == {"kind": "model", "id": "gpt", "reason": "too dear"}


async def test_revocation_is_a_ledger_row_that_readers_are_told_of(host: Host, run_id: str) -> None:
    told: list[object] = []
    listener = await asyncpg.connect(host.dependencies.database_url.replace("+asyncpg", ""))
    await listener.add_listener(LEDGER_CHANNEL, lambda *message: told.append(message[-1]))
    await revoke(host, run_id, kind="skill", id="write")
    (row,) = await ledger(host, run_id)
    assert (row["type"], row["source"]) == ("host.grant_revoked", "host")
    assert row["data"] == {"kind": "skill", "id": "write", "reason": None}
    await eventually(lambda: f"{run_id}:{row['sequence']}" in told)
    await listener.close()


async def test_whole_run_loses_everything(host: Host, run_id: str) -> None:
    effective = (await revoke(host, run_id, kind="run")).json()["effective"]
    assert not any(effective["resources"][kind] for kind in ("models", "tools", "knowledge_bases", "skills", "files"))
    assert not any(effective["available_apis"].values())
    assert effective["state_context"]["scope_keys"] == {}


async def test_taking_back_again_changes_nothing(host: Host, run_id: str) -> None:
    first = await revoke(host, run_id, kind="model", id="gpt")
    again = await revoke(host, run_id, kind="model", id="gpt", reason="once more")
    assert (again.status_code, again.json()) == (200, first.json())
    assert len(await ledger(host, run_id)) == 1


async def test_repeat_under_its_key_is_answered_like_the_first_even_after_the_end(host: Host, run_id: str) -> None:
    first = await revoke(host, run_id, key="k", kind="model", id="gpt")
    await (await host.writer(run_id)).complete()
    again = await revoke(host, run_id, key="k", kind="model", id="gpt")
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    other = await revoke(host, run_id, key="k", kind="model", id="small")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_ended_run_is_refused(host: Host, run_id: str) -> None:
    await (await host.writer(run_id)).complete()
    answer = await revoke(host, run_id, kind="model", id="gpt")
    assert (answer.status_code, answer.json()["code"]) == (409, "run_terminal")


async def test_what_was_never_granted_is_named(host: Host, run_id: str) -> None:
    answer = await revoke(host, run_id, kind="tool", id="gpt")
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_argument")
    assert [(fault["field"], fault["value"]) for fault in problem["errors"]] == [("id", "gpt")]
    assert await ledger(host, run_id) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "model"}, "id"),
        ({"kind": "run", "id": "gpt"}, "id"),
        ({"kind": "model", "id": ""}, "id"),
        ({"kind": "storage", "id": "x"}, "kind"),
        ({"id": "gpt"}, "kind"),
        ({"kind": "run", "reason": "x" * 1_001}, "reason"),
        ({"kind": "run", "more": 1}, "more"),
    ],
    ids=str,
)
async def test_bad_request_names_its_field(host: Host, run_id: str, body: dict[str, Any], field: str) -> None:
    answer = await revoke(host, run_id, **body)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == [field]


async def test_strangers_change_nothing(host: Host, run_id: str) -> None:
    """PM-8 for those who administrate another workspace."""
    path = f"/v1/runs/{run_id}/authorization/revoke"
    assert (await (await host.stranger()).post(path, json={"kind": "run"})).status_code == 404
    assert (await read(host, run_id))["revocations"] == []
