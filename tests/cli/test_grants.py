"""`runhost runs authorization` and `runhost runs revoke`."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.client.stub import RUN_ID, TIME, HostStub, answer


def part(*models: str) -> dict[str, Any]:
    return {
        "runner_id": "plugin:a/b/c",
        "plugin_identity": "a/b",
        "resources": {"models": [{"model_id": name, "operations": ["invoke", "stream"]} for name in models]},
        "available_apis": {"state": bool(models)},
    }


def authorization(*left: str, **revocation: Any) -> dict[str, Any]:
    taken = [{"revoked_at": TIME, "reason": "too\u202e dear"} | revocation] if revocation else []
    return {"run_id": RUN_ID, "snapshot": part("gpt", "small"), "revocations": taken, "effective": part(*left)}


async def test_authorization_shows_grants_and_what_was_taken_back(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, authorization("small", kind="model", id="gpt")))

    outcome = await cli("runs", "authorization", RUN_ID)

    assert host_stub.requests[0].path == f"/v1/runs/{RUN_ID}/authorization"
    head, gone, kept, api = outcome.stdout.splitlines()
    assert head.split()[:3] == ["kind", "granted", "operations"]
    assert gone.split() == ["model", "gpt", "invoke", "stream", "2026-05-01", "12:00:00", "too�", "dear"]
    assert kept.split() == ["model", "small", "invoke", "stream", "-", "-"]
    assert api.split() == ["api", "state", "-", "-"]


async def test_authorization_of_a_run_that_lost_everything(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, authorization(kind="run", id=None)))

    outcome = await cli("runs", "authorization", RUN_ID)

    assert outcome.stdout.count("2026-05-01") == 3


async def test_authorization_before_the_run_is_prepared(cli: Cli, host_stub: HostStub) -> None:
    nothing = {"run_id": RUN_ID, "snapshot": None, "revocations": [], "effective": None}
    host_stub.play(answer(200, nothing))

    outcome = await cli("runs", "authorization", RUN_ID)
    as_json = await cli("runs", "authorization", RUN_ID, "--json")

    assert (outcome.code, outcome.stdout) == (0, "")
    assert "not prepared" in outcome.stderr
    assert as_json.documents == [nothing]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (("model", "gpt", "--reason", "too dear"), {"kind": "model", "id": "gpt", "reason": "too dear"}),
        (("run",), {"kind": "run", "id": None, "reason": None}),
    ],
    ids=["one", "everything"],
)
async def test_revoke_says_what_is_lost(cli: Cli, host_stub: HostStub, arguments: tuple[str, ...], sent: Any) -> None:
    host_stub.play(answer(200, authorization("small", kind="model", id="gpt")))

    outcome = await cli("runs", "revoke", RUN_ID, *arguments)

    assert host_stub.requests[0].path == f"/v1/runs/{RUN_ID}/authorization/revoke"
    assert host_stub.requests[0].json == sent
    assert (outcome.code, outcome.stdout) == (0, "")
    assert "has lost" in outcome.stderr


@pytest.mark.parametrize("arguments", [("model",), ("run", "gpt"), ("storage", "x")], ids=str)
async def test_revoke_of_half_a_thing_is_wrong_usage(cli: Cli, host_stub: HostStub, arguments: tuple[str, ...]) -> None:
    outcome = await cli("runs", "revoke", RUN_ID, *arguments)

    assert outcome.code == 2
    assert host_stub.requests == []


async def test_accesses_show_what_was_called_and_what_was_refused(cli: Cli, host_stub: HostStub) -> None:
    call = {"run_id": RUN_ID, "attempt": 1, "runner_id": "plugin:a/b/c", "scope": "stream", "created_at": TIME}
    granted = call | {"action": "invoke_llm_stream", "resource": "model:gpt", "result": "ok", "duration_ms": 12.34}
    refused = call | {"action": "call_tool", "resource": None, "result": "unauthorized", "duration_ms": 0.5}
    page = {"items": [refused, granted], "next_cursor": None, "has_more": False}
    host_stub.play(answer(200, page), answer(200, page))

    shown = await cli("runs", "accesses", RUN_ID)
    as_json = await cli("runs", "accesses", RUN_ID, "--json")

    assert host_stub.requests[0].path.startswith(f"/v1/runs/{RUN_ID}/accesses")
    head, second, first = shown.stdout.splitlines()
    assert head.split()[-3:] == ["scope", "result", "ms"]
    assert second.split()[2:] == ["1", "call_tool", "-", "stream", "unauthorized", "0.5"]
    assert first.split()[2:] == ["1", "invoke_llm_stream", "model:gpt", "stream", "ok", "12.3"]
    assert [document["result"] for document in as_json.documents] == ["unauthorized", "ok"]


async def test_run_without_calls_says_so(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, {"items": [], "next_cursor": None, "has_more": False}))

    outcome = await cli("runs", "accesses", RUN_ID)

    assert (outcome.code, outcome.stdout) == (0, "")
    assert "called nothing" in outcome.stderr
