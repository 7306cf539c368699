"""The host API over HTTP: what is sent, and what becomes of every kind of answer."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from runhost.protocol import AgentAPIException, Message
from runhost.sdk import AgentRunAPIProxy
from runhost.sdk import http as http_module
from runhost.sdk.http import HttpConnection
from tests.client.stub import HostStub, Step, answer, cut
from tests.eventually import eventually
from tests.fixtures.openai_stub import OpenAIStub, Reply, StubRequest
from tests.sdk.connections import granted

IDENTITY = "acme/greeter"
PROBLEM = {"type": "urn:runhost:problem:x", "title": "X", "status": 403, "detail": "Because.", "retryable": False}


@pytest.fixture
def stub(openai_stub: OpenAIStub) -> HostStub:
    return HostStub(openai_stub)


@pytest.fixture
async def connection(stub: HostStub) -> AsyncIterator[HttpConnection]:
    async with HttpConnection(stub.url, "token-1", "run-1", IDENTITY) as connection:
        yield connection


def frames(*events: tuple[str, Any], end: bool = True) -> Step:
    """Answer with a stream; without `end` the connection is cut after the events."""

    async def step(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_raw(b": ping\n\n")
        for event, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            await reply.send_raw(f"event: {event}\ndata: {text}\n\n".encode())
        if end:
            await reply.end_chunks()
        else:
            reply.reset()

    return step


async def items(connection: HttpConnection) -> list[Any]:
    return [event async for event in connection.stream("invoke_llm_stream", {})]


async def failure_of(connection: HttpConnection) -> AgentAPIException:
    with pytest.raises(AgentAPIException) as failure:
        await connection.call("state_get", {"key": "k"})
    return failure.value


async def test_call_carries_the_run_and_its_token(connection: HttpConnection, stub: HostStub) -> None:
    stub.play(answer(200, {"value": "你"}))

    assert await connection.call("state_get", {"scope": "actor", "key": "你"}) == {"value": "你"}

    [request] = stub.requests
    assert (request.method, request.path) == ("POST", "/v1/host/state_get")
    assert request.headers["authorization"] == "Bearer token-1"
    assert request.headers["runhost-run-id"] == "run-1"
    assert request.headers["runhost-plugin-identity"] == IDENTITY
    # In UTF-8: what counts for the limits is what is sent (D-16).
    assert request.body == '{"scope":"actor","key":"你"}'.encode()


async def test_odd_text_travels_exactly(connection: HttpConnection, stub: HostStub) -> None:
    """D-31: escaped where UTF-8 cannot carry it."""
    stub.play(answer(200, {"value": "\ud800\0"}))

    assert await connection.call("state_set", {"value": "\ud800\0"}) == {"value": "\ud800\0"}
    assert stub.requests[0].json == {"value": "\ud800\0"}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "unauthorized"),
        (403, "unauthorized"),
        (404, "not_found"),
        (400, "invalid_argument"),
        (504, "deadline_exceeded"),
    ],
)
async def test_problem_becomes_the_error_that_it_tells(
    connection: HttpConnection, stub: HostStub, status: int, code: str
) -> None:
    """PROTOCOL 10."""
    stub.play(answer(status, PROBLEM | {"status": status, "code": code, "details": {"field": "key"}}))

    error = (await failure_of(connection)).error

    assert (error.code, error.message, error.retryable, error.details) == (code, "Because.", False, {"field": "key"})
    assert len(stub.requests) == 1


async def test_wait_that_the_host_asks_for_is_told(connection: HttpConnection, stub: HostStub) -> None:
    """D-16: the caller decides whether to wait; nothing is repeated here."""
    stub.play(answer(429, PROBLEM | {"code": "rate_limited", "retryable": True}, Retry_After="2"))

    error = (await failure_of(connection)).error

    assert (error.code, error.retryable, error.details) == ("rate_limited", True, {"retry_after_seconds": 2.0})
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "retryable"),
    [
        (502, "bad gateway", True),
        (500, {"error": "no code"}, False),
        (500, ["list"], False),
        (400, {"code": 7, "detail": "x"}, False),
        (302, {}, False),
        (404, {"code": ""}, False),
    ],
    ids=["proxy", "no code", "list", "odd code", "redirect", "empty code"],
)
async def test_error_without_structure_gets_a_code(
    connection: HttpConnection, stub: HostStub, status: int, body: object, retryable: bool
) -> None:
    """PROTOCOL 10: runners never match strings."""
    stub.play(answer(status, body))

    error = (await failure_of(connection)).error

    assert (error.code, error.retryable) == ("host.action_error", retryable)
    assert f"HTTP status {status}" in error.message


@pytest.mark.parametrize("body", ["{", "[]", "7", "", "[" * 100_000], ids=["cut", "list", "number", "nothing", "deep"])
async def test_answer_that_is_no_object_is_an_error(connection: HttpConnection, stub: HostStub, body: str) -> None:
    async def rubbish(_request: StubRequest, reply: Reply) -> None:
        await reply.send_text(200, body, "application/json")

    stub.play(rubbish)

    assert (await failure_of(connection)).error.code == "runtime_error"


@pytest.mark.parametrize("begun", [False, True], ids=["before the answer", "within the answer"])
async def test_lost_connection_is_not_tried_again(connection: HttpConnection, stub: HostStub, begun: bool) -> None:
    """What was sent may have been carried out."""

    async def begin(_request: StubRequest, reply: Reply) -> None:
        await reply.send_head(200, {"Content-Length": "100"})
        await reply.send_raw(b'{"value"')
        reply.reset()

    stub.play(begin if begun else cut)

    error = (await failure_of(connection)).error

    assert (error.code, error.retryable) == ("runtime_error", True)
    assert "may or may not" in error.message
    assert len(stub.requests) == 1


async def test_host_that_is_not_there_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was sent, so it may be tried again."""
    monkeypatch.setattr(http_module, "CONNECT_PAUSES", (0.001, 0.001))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with HttpConnection(url, "token", "run-1", IDENTITY) as connection:
        error = (await failure_of(connection)).error

    assert (error.code, error.retryable) == ("runtime_error", True)
    assert "nothing was sent" in error.message


async def test_attempts_to_connect_go_on_until_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "CONNECT_PAUSES", (0.0, 0.0))
    tries: list[str] = []

    async def respond(request: httpx.Request) -> httpx.Response:
        tries.append(request.url.path)
        if len(tries) < 3:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={"value": 1})

    async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as client:
        connection = HttpConnection("http://host", "token", "run-1", IDENTITY, client=client)
        assert await connection.call("state_get", {}) == {"value": 1}
        await connection.close()
        assert not client.is_closed

    assert tries == ["/v1/host/state_get"] * 3


async def test_stream_yields_until_its_end(connection: HttpConnection, stub: HostStub) -> None:
    stub.play(
        frames(("item", {"n": 1}), ("news", {"n": 2}), ("item", {"n": "\ud800"}), ("end", {}), ("item", {"n": 4}))
    )

    assert await items(connection) == [{"n": 1}, {"n": "\ud800"}]
    assert stub.requests[0].headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (("error", {"code": "deadline_exceeded", "message": "late"}), "deadline_exceeded"),
        (("error", {"code": "x"}), "runtime_error"),
        (("error", "{"), "runtime_error"),
        (("item", "[]"), "runtime_error"),
    ],
    ids=["error", "half an error", "rubbish", "no object"],
)
async def test_stream_may_fail_between_two_events(
    connection: HttpConnection, stub: HostStub, frame: tuple[str, Any], code: str
) -> None:
    stub.play(frames(("item", {"n": 1}), frame))
    events = connection.stream("invoke_llm_stream", {})

    assert await anext(events) == {"n": 1}
    with pytest.raises(AgentAPIException) as failure:
        await anext(events)

    assert failure.value.error.code == code


@pytest.mark.parametrize("end", [True, False], ids=["ended early", "cut off"])
async def test_stream_without_its_end_is_an_error(connection: HttpConnection, stub: HostStub, end: bool) -> None:
    stub.play(frames(("item", {"n": 1}), end=end))

    with pytest.raises(AgentAPIException, match="runtime_error"):
        await items(connection)

    assert len(stub.requests) == 1


async def test_stream_that_falls_silent_is_an_error(
    connection: HttpConnection, stub: HostStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "SILENCE_SECONDS", 0.05)

    async def silent(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.until_disconnected()

    stub.play(silent)

    with pytest.raises(AgentAPIException, match=r"connection was lost \(ReadTimeout\)"):
        await items(connection)


async def test_refusal_of_a_stream_is_a_problem(connection: HttpConnection, stub: HostStub) -> None:
    stub.play(answer(403, PROBLEM | {"code": "unauthorized"}))

    with pytest.raises(AgentAPIException, match=r"unauthorized: Because\."):
        await items(connection)


@pytest.mark.parametrize("is_stream", [False, True], ids=["call", "stream"])
async def test_call_that_is_given_up_closes_its_connection(
    connection: HttpConnection, stub: HostStub, is_stream: bool
) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def endless(_request: StubRequest, reply: Reply) -> None:
        if is_stream:
            await reply.start_stream()
            await reply.send_raw(b'event: item\ndata: {"n": 1}\n\n')
        asked.set()
        await reply.until_disconnected()
        gone.set()

    stub.play(endless)
    if is_stream:
        async with aclosing(connection.stream("invoke_llm_stream", {})) as events:
            await anext(events)
    else:
        task = asyncio.create_task(connection.call("state_get", {}))
        await asked.wait()
        task.cancel()

    await eventually(gone.is_set)


@pytest.mark.parametrize("token", ["", "canary\nX: y", "two words"])
def test_wrong_token_is_refused_unquoted(token: str) -> None:
    """INV-9."""
    with pytest.raises(ValueError, match="token") as refusal:
        HttpConnection("http://h", token, "run-1", IDENTITY)

    assert "canary" not in str(refusal.value)


async def test_proxy_works_over_it(connection: HttpConnection, stub: HostStub) -> None:
    usage = {"usage": {"total_tokens": 2}}
    stub.play(
        answer(200, {"langbot_version": "1.2"}),
        frames(("item", {"chunk": {"content": "A"}}), ("item", usage), ("end", {})),
        frames(("error", {"code": "runtime_error", "message": "the model is gone", "retryable": True})),
    )
    api = AgentRunAPIProxy(granted(seconds_left=60), connection)
    prompt = [Message(role="user", content="Hi")]

    assert await api.get_langbot_version() == "1.2"
    assert [chunk.content async for chunk in api.invoke_llm_stream("gpt", prompt)] == ["A"]
    with pytest.raises(AgentAPIException) as failure:
        await anext(api.invoke_llm_stream_events("gpt", prompt))

    assert failure.value.error.retryable
