import socket
from typing import Any

import pytest

from runhost.client import (
    ApiProblem,
    BindingRequest,
    HostUnreachable,
    RetryPolicy,
    RunFilter,
    RunhostClient,
    RunRequest,
    UnexpectedAnswer,
)
from runhost.protocol import AgentConfig, AgentEventEnvelope, AgentInput, RunStatus
from tests.client.stub import FAST, KEY, RUN_ID, TIME, HostStub, answer, cut, problem, run

ENVELOPE = AgentEventEnvelope.model_validate(
    {
        "event_id": "e1",
        "event_type": "message.received",
        "source": "api",
        "input": {"text": "hello"},
        "delivery": {"surface": "cli"},
        "data": {"odd": "\ud800"},
    }
)
RECEIPT = {"event_id": "e1", "disposition": "run_started", "run_id": RUN_ID, "from_the_future": True}


async def test_event_is_sent_as_written_with_key(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(answer(202, RECEIPT))

    receipt = await client.send_event(ENVELOPE)

    [request] = host_stub.requests
    assert (request.method, request.path) == ("POST", "/v1/events")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {
        "event_id": "e1",
        "event_type": "message.received",
        "source": "api",
        "input": {"text": "hello"},
        "delivery": {"surface": "cli"},
        "data": {"odd": "\ud800"},
    }
    assert (receipt.disposition, receipt.run_id) == ("run_started", RUN_ID)


@pytest.mark.parametrize(
    "trouble",
    [
        cut,
        problem(503, "engine_unavailable", retryable=True, Retry_After="0"),
        problem(409, "idempotency_key_in_use", retryable=True),
        answer(502, "a proxy's page"),
        problem(429, "rate_limited", Retry_After="0"),
    ],
    ids=["cut", "unavailable", "in use", "proxy", "too many"],
)
async def test_write_is_repeated_under_the_same_key(client: RunhostClient, host_stub: HostStub, trouble: Any) -> None:
    host_stub.play(trouble, trouble, answer(201, run()))

    await client.create_run(RunRequest(agent_id="a1", input=AgentInput(text="go")))
    await client.create_run(RunRequest(agent_id="a1"))

    keys = [request.headers["idempotency-key"] for request in host_stub.requests]
    assert len(keys) == 4
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]
    assert host_stub.requests[0].json == {"agent_id": "a1", "input": {"text": "go"}}


async def test_tries_come_to_an_end(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(problem(503, "engine_unavailable", retryable=True))

    with pytest.raises(ApiProblem) as refusal:
        await client.get_run(RUN_ID)

    assert refusal.value.retryable
    assert len(host_stub.requests) == FAST.max_tries


async def test_wait_that_the_host_wants_longer_than_we_do_is_left_to_the_caller(
    client: RunhostClient, host_stub: HostStub
) -> None:
    host_stub.play(problem(429, "rate_limited", Retry_After="3600"))

    with pytest.raises(ApiProblem) as refusal:
        await client.get_run(RUN_ID)

    assert refusal.value.retry_after_seconds == 3600
    assert len(host_stub.requests) == 1


async def test_refusal_is_raised_at_once_with_its_facts(client: RunhostClient, host_stub: HostStub) -> None:
    faults = [{"field": "input.text", "message": "too long"}, {"field": "actor", "message": "missing"}, "rubbish"]
    host_stub.play(problem(422, "invalid_argument", errors=faults, run_id=RUN_ID))

    with pytest.raises(ApiProblem, match=r"invalid_argument \(422\): because of invalid_argument") as refusal:
        await client.get_run(RUN_ID)

    error = refusal.value
    assert (error.status, error.code, error.detail) == (422, "invalid_argument", "because of invalid_argument")
    assert error.errors == faults[:2]
    assert not error.retryable
    assert error.document["run_id"] == RUN_ID
    assert "input.text: too long" in str(error)
    assert len(host_stub.requests) == 1


async def test_nobody_at_the_address_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with RunhostClient(url, KEY, retry=FAST) as client:
        with pytest.raises(HostUnreachable, match=f"No answer from {url}"):
            await client.get_run(RUN_ID)


@pytest.mark.parametrize(
    "wrong",
    [answer(200, "<html>"), answer(200, {"hello": 1}), answer(404, [1]), answer(200, [])],
    ids=["html", "object", "error", "list"],
)
async def test_other_server_is_named_as_such(client: RunhostClient, host_stub: HostStub, wrong: Any) -> None:
    host_stub.play(wrong)

    with pytest.raises(UnexpectedAnswer, match="Is this the address of a runhost API"):
        await client.get_run(RUN_ID)


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://", "http://u:canary@host", "http://h/?q=1"])
def test_wrong_address_is_refused_unquoted(url: str) -> None:
    with pytest.raises(ValueError, match="address") as refusal:
        RunhostClient(url, KEY)

    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize("key", ["", " ", "canary\nX: y", "ключ", "two words"])
def test_wrong_key_is_refused_unquoted(key: str) -> None:
    with pytest.raises(ValueError, match="key") as refusal:
        RunhostClient("http://h", key)

    assert "canary" not in str(refusal.value)


async def test_list_names_filters_and_cursor(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(answer(200, {"items": [run(status="failed")], "next_cursor": "c2", "has_more": True}))

    page = await client.list_runs(RunFilter(status=RunStatus.FAILED, bot_id="b 1&2"), limit=1, cursor="c1")

    assert host_stub.requests[0].path == "/v1/runs?limit=1&cursor=c1&status=failed&bot_id=b+1%262"
    assert (page.items[0].status, page.next_cursor, page.has_more) == (RunStatus.FAILED, "c2", True)


@pytest.mark.parametrize(
    ("identifier", "path"),
    [("a/../b ?#%", "a%2F..%2Fb%20%3F%23%25"), ("..", "%2E%2E"), (".", "%2E"), ("你", "%E4%BD%A0")],
)
async def test_ids_are_one_segment_of_the_path(
    client: RunhostClient, host_stub: HostStub, identifier: str, path: str
) -> None:
    config = {"runner_id": "plugin:a/b/c"}
    host_stub.play(answer(200, {"agent_id": identifier, "version": 1, "config": config, "created_at": TIME}))

    await client.put_agent(identifier, AgentConfig.model_validate(config))

    [request] = host_stub.requests
    assert (request.method, request.path, request.json) == ("PUT", f"/v1/agents/{path}", config)


async def test_binding_says_what_was_chosen(client: RunhostClient, host_stub: HostStub) -> None:
    scope = {"scope_type": "workspace", "scope_id": None}
    body = {"binding_id": "b", "agent_id": "a", "scope": scope, "event_types": ["x.y"], "priority": 1, "enabled": True}
    host_stub.play(answer(200, {**body, "updated_at": TIME}))

    binding = await client.put_binding("b", BindingRequest(agent_id="a", event_types=["x.y"], priority=1))

    assert host_stub.requests[0].json["scope"] == {"scope_type": "workspace"}
    assert binding.event_types == ["x.y"]


def test_delays_grow_and_are_bounded() -> None:
    policy = RetryPolicy(first_delay_seconds=1, max_delay_seconds=10)

    delays = [policy.delay(failures) or 0 for failures in (1, 2, 3, 4, 1_000)]

    for delay, longest in zip(delays, (1, 2, 4, 8, 10), strict=True):
        assert longest / 2 <= delay <= longest
    assert policy.delay(1, 10) == 10
    assert policy.delay(1, 10.5) is None
