"""Agents, bindings, runners."""

import asyncio
import json
from typing import Any

import pytest

from runhost.protocol import AgentRunnerDescriptor
from stores.runners import RunnerStore
from tests.api.conftest import RUNNER, Host, event


async def test_agent_gets_a_version_with_each_change(host: Host) -> None:
    path, body = "/v1/agents/a", {"runner_id": RUNNER, "runner_config": {"x": 1}}
    first = (await host.client.put(path, json=body)).json()
    same = (await host.client.put(path, json=body)).json()
    changed = (await host.client.put(path, json=body | {"runner_config": {"x": 2}})).json()
    assert (first["version"], same, changed["version"]) == (1, first, 2)
    assert (await host.client.get(path)).json() == changed
    assert changed["config"]["agent_id"] == "a"


async def test_agent_that_many_create_at_once_is_created_once(host: Host) -> None:
    bodies = [{"runner_id": RUNNER, "runner_config": {"x": number % 3}} for number in range(9)]
    answers = await asyncio.gather(*(host.client.put("/v1/agents/a", json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    versions = {answer.json()["version"] for answer in answers}
    assert versions == set(range(1, max(versions) + 1))


AGENT_FAULTS = [
    ({}, "runner_id"),
    ({"runner_id": "scripted"}, "runner_id"),
    ({"runner_id": "plugin:a/b"}, "runner_id"),
    ({"runner_id": "plugin:a/b/c/d"}, "runner_id"),
    ({"runner_id": RUNNER, "agent_id": "b"}, "agent_id"),
    ({"runner_id": RUNNER, "colour": "red"}, "colour"),
    ({"runner_id": RUNNER, "state_policy": {"enabled": True}}, "state_policy.enabled"),
    ({"runner_id": RUNNER, "state_policy": {"state_scopes": ["moon"]}}, "state_policy.state_scopes[0]"),
    ({"runner_id": RUNNER, "max_attempts": 0}, "max_attempts"),
    ({"runner_id": RUNNER, "runner_config": {"t": float("inf")}}, "runner_config.t"),
]


@pytest.mark.parametrize(("body", "field"), AGENT_FAULTS)
async def test_bad_agent_is_refused_by_field(host: Host, body: dict[str, Any], field: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await host.client.put("/v1/agents/a", content=json.dumps(body), headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert (await host.client.get("/v1/agents/a")).status_code == 404


async def test_agents_and_bindings_are_paged_by_id(host: Host) -> None:
    for name in "cab":
        await host.agent(name)
        await host.binding(name, name, enabled=False)
    for path, key in (("/v1/agents", "agent_id"), ("/v1/bindings", "binding_id")):
        first = (await host.client.get(path, params={"limit": 2})).json()
        second = (await host.client.get(path, params={"cursor": first["next_cursor"]})).json()
        assert [item[key] for item in first["items"] + second["items"]] == ["a", "b", "c"]


async def test_binding_is_replaced_as_a_whole(host: Host) -> None:
    await host.agent()
    path = "/v1/bindings/b"
    scope = {"scope_type": "bot", "scope_id": "b1"}
    await host.client.put(path, json={"agent_id": "echo", "scope": scope, "priority": 3, "event_types": ["x.y"]})
    read = (await host.client.get(path)).json()
    assert (read["scope"], read["priority"], read["event_types"]) == (scope, 3, ["x.y"])
    await host.client.put(path, json={"agent_id": "echo"})
    read = (await host.client.get(path)).json()
    assert read["scope"] == {"scope_type": "workspace", "scope_id": None}
    assert (read["priority"], read["event_types"], read["enabled"]) == (0, ["message.received"], True)


async def test_binding_of_an_unknown_agent_is_not_found(host: Host) -> None:
    answer = await host.client.put("/v1/bindings/b", json={"agent_id": "nobody"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "'nobody'" in answer.json()["detail"]
    assert (await host.client.get("/v1/bindings/b")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scope": {"scope_type": "bot"}}, "scope"),
        ({"scope": {"scope_type": "workspace", "scope_id": "x"}}, "scope"),
        ({"scope": {"scope_type": "galaxy"}}, "scope.scope_type"),
        ({"event_types": []}, "event_types"),
        ({"event_types": ["Message"]}, "event_types[0]"),
        ({"priority": 2**40}, "priority"),
        ({"priority": "high"}, "priority"),
        ({"filters": []}, "filters"),
    ],
)
async def test_bad_binding_is_refused_by_field(host: Host, body: dict[str, Any], field: str) -> None:
    await host.agent()
    answer = await host.client.put("/v1/bindings/b", json={"agent_id": "echo"} | body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


async def test_bots_binding_wins_and_disabled_ones_do_not_count(host: Host) -> None:
    await host.agent("all")
    await host.agent("one")
    await host.binding("w", "all")
    await host.binding("b", "one", scope={"scope_type": "bot", "scope_id": "b1"})

    async def agent_for(event_id: str, bot_id: str) -> str:
        receipt = (await host.client.post("/v1/events", json=event(event_id, bot_id=bot_id))).json()
        return (await host.client.get(f"/v1/runs/{receipt['run_id']}")).json()["agent_id"]

    assert (await agent_for("e1", "b1"), await agent_for("e2", "b2")) == ("one", "all")
    await host.binding("b", "one", scope={"scope_type": "bot", "scope_id": "b1"}, enabled=False)
    assert await agent_for("e3", "b1") == "all"


async def test_runners_are_listed_with_their_descriptors(host: Host) -> None:
    descriptor = AgentRunnerDescriptor.model_validate(
        {
            "id": RUNNER,
            "source": "plugin",
            "label": {"en_US": "Scripted"},
            "plugin_author": "runhost",
            "plugin_name": "scripted",
            "runner_name": "default",
        }
    )
    async with host.engine.begin() as connection:
        await RunnerStore(connection).announce("queue", [descriptor])
    items = (await host.client.get("/v1/runners")).json()["items"]
    assert [(item["descriptor"]["id"], item["task_queue"], item["is_stale"]) for item in items] == [
        (RUNNER, "queue", False)
    ]
