import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_runs import page
from tests.client.stub import TIME, HostStub, answer

CONFIG = {"runner_id": "plugin:a/b/c", "runner_config": {"x": 1}}
AGENT = {"agent_id": "a1", "version": 2, "config": CONFIG, "created_at": TIME}
BINDING = {
    "binding_id": "b1",
    "agent_id": "a1",
    "scope": {"scope_type": "bot", "scope_id": "bot1"},
    "event_types": ["message.received", "x.y"],
    "priority": 3,
    "enabled": False,
    "updated_at": TIME,
}
RUNNER = {
    "descriptor": {
        "id": "plugin:a/b/c",
        "label": {"en_US": "C"},
        "plugin_author": "a",
        "plugin_name": "b",
        "runner_name": "c",
        "plugin_version": "1.2",
        "config_schema": [{"name": "model", "required": True}, {"name": "prompt"}],
    },
    "task_queue": "runhost",
    "is_stale": True,
    "last_seen_at": TIME,
}


async def test_agent_is_put_from_options(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, AGENT))

    outcome = await cli("agents", "put", "a1", "--runner", "plugin:a/b/c", "--config", '{"x": 1}')

    assert (host_stub.requests[0].method, host_stub.requests[0].path) == ("PUT", "/v1/agents/a1")
    assert host_stub.requests[0].json == CONFIG
    assert "Agent a1 is at version 2." in outcome.stderr


async def test_agent_is_put_from_a_file_that_options_override(cli: Cli, host_stub: HostStub, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text(json.dumps({**CONFIG, "max_attempts": 1}))
    host_stub.play(answer(200, AGENT))

    outcome = await cli("agents", "put", "a1", "--file", str(tmp_path / "agent.json"), "--config", "{}", "--json")

    assert host_stub.requests[0].json == {**CONFIG, "runner_config": {}, "max_attempts": 1}
    assert outcome.documents[0]["version"] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("agents", "put", "a1"), "say which runner"),
        (("agents", "put", "a1", "--runner", "x", "--file", "-"), "surprise"),
        (("bindings", "put", "b1"), "say which agent"),
        (("bindings", "put", "b1", "--agent", "a", "--event-type", "X"), "event_types[0]"),
        (("bindings", "put", "b1", "--agent", "a", "--priority", "9999999"), "priority"),
    ],
)
async def test_wrong_input_is_told_before_anything_is_sent(
    cli: Cli, host_stub: HostStub, arguments: tuple[str, ...], told: str
) -> None:
    outcome = await cli(*arguments, stdin='{"surprise": 1}')

    assert outcome.code == 2
    assert told in outcome.stderr
    assert host_stub.requests == []


async def test_agents_are_listed_and_shown(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page(AGENT), page(AGENT), answer(200, AGENT), answer(200, AGENT), page())

    listed = await cli("agents", "list")
    assert listed.stdout.splitlines()[1].split()[:4] == ["a1", "2", "plugin:a/b/c", "message.received"]
    assert (await cli("agents", "list", "--json")).documents[0]["agent_id"] == "a1"
    shown = await cli("agents", "show", "a1")
    assert json.loads(shown.stdout)["runner_config"] == {"x": 1}
    assert "version 2" in shown.stderr
    assert (await cli("agents", "show", "a1", "--json")).documents[0]["version"] == 2
    assert "`runhost agents put` makes one" in (await cli("agents", "list")).stderr


async def test_binding_is_put_from_options(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, BINDING))
    types = ("--event-type", "message.received", "--event-type", "x.y")

    outcome = await cli("bindings", "put", "b1", "--agent", "a1", "--bot", "bot1", *types, "--disabled")

    assert host_stub.requests[0].json == {
        "agent_id": "a1",
        "scope": {"scope_type": "bot", "scope_id": "bot1"},
        "event_types": ["message.received", "x.y"],
        "priority": 0,
        "enabled": False,
    }
    assert "message.received, x.y leads to agent a1" in outcome.stderr


async def test_bindings_are_listed(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page(BINDING), page(BINDING), page())

    listed = await cli("bindings", "list")
    assert listed.stdout.splitlines()[1].split()[:4] == ["b1", "a1", "bot", "bot1"]
    assert (await cli("bindings", "list", "--json")).documents[0]["binding_id"] == "b1"
    assert "`runhost bindings put` makes one" in (await cli("bindings", "list")).stderr


async def test_runners_are_listed_with_what_they_need(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page(RUNNER), page(RUNNER), page())

    listed = await cli("runners")
    assert "plugin:a/b/c (stale)  1.2      model*, prompt" in listed.stdout
    assert (await cli("runners", "--json")).documents[0]["descriptor"]["id"] == "plugin:a/b/c"
    assert "No worker offers a runner" in (await cli("runners")).stderr
