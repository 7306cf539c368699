"""The runner's proxy over HTTP against the real routes: what the stub of tests/sdk plays is what the host says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from host_api.audit import AccessAudit
from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.gate import HostApi
from host_api.limits import CallLimits
from runhost.protocol import AgentAPIException, AgentRunContext, ErrorCode, Message, MessageChunk
from runhost.protocol.host_api import ModelStreamEvent, StateValue
from runhost.sdk import AgentRunAPIProxy
from runhost.sdk.http import HttpConnection
from tests.api.conftest import Host
from tests.api.run_access import RunAccess, open_access
from tests.eventually import eventually
from tests.host_api.gates import define, definitions
from tests.sdk.connections import EVERYTHING, granted

PROMPT = [Message(role="user", content="hi")]
CTX = granted(EVERYTHING | {"models": [{"model_id": "m1"}], "tools": [{"tool_name": "t1"}]})


@pytest.fixture
async def access(server: Host) -> RunAccess:
    return await open_access(server)


@pytest.fixture
async def connection(access: RunAccess) -> AsyncIterator[HttpConnection]:
    async with connect(access) as connection:
        yield connection


def connect(access: RunAccess, **other: str) -> HttpConnection:
    shown = {"token": access.token, "run_id": str(access.row.run_id), "plugin_identity": "runhost/scripted"} | other
    address = f"http://127.0.0.1:{access.host.port}"
    return HttpConnection(address, shown["token"], shown["run_id"], shown["plugin_identity"])


def serve_methods(
    server: Host, patch: pytest.MonkeyPatch, *own: MethodDefinition, limits: CallLimits | None = None
) -> None:
    """Serve other methods than the real ones, behind the same gate and the same routes."""
    services = server.services.host_api._services
    api = HostApi(services, AccessAudit(services.pool), limits=limits, methods=definitions(*own))
    patch.setitem(server.services.__dict__, "host_api", api)


async def code_of(connection: HttpConnection, ctx: AgentRunContext = CTX) -> str:
    with pytest.raises(AgentAPIException) as refusal:
        await AgentRunAPIProxy(ctx, connection).call_tool("t1", {})
    return refusal.value.error.code


async def test_state_and_storage_come_back_as_kept(connection: HttpConnection) -> None:
    api = AgentRunAPIProxy(CTX, connection)
    value: Any = {"text": "你\0", "list": [1, 2.5, None, True]}
    content = bytes(range(256)) * 4_000

    await api.state_set("runner", "k", value)
    await api.set_workspace_storage("k", content)

    assert await api.state_get("runner", "k") == value
    assert (await api.state_list("runner")).keys == ["k"]
    assert await api.state_delete("runner", "k")
    assert await api.state_get("runner", "k") is None
    assert await api.get_workspace_storage("k") == content
    assert await api.get_workspace_storage_keys() == ["k"]
    assert await api.delete_workspace_storage("k")
    assert await api.get_plugin_storage("k") is None


async def test_pages_are_read_to_their_end(connection: HttpConnection) -> None:
    api = AgentRunAPIProxy(CTX, connection)

    assert [item async for item in api.iter_history()] == [item async for item in api.iter_history(direction="forward")]


async def test_host_refuses_what_the_context_still_lists(connection: HttpConnection) -> None:
    """S-2: a context that claims more than the snapshot holds gains nothing."""
    with pytest.raises(AgentAPIException) as refusal:
        await AgentRunAPIProxy(granted(), connection).call_tool("clock", {})

    assert refusal.value.error.code == "unauthorized"


@pytest.mark.parametrize("wrong", [{"token": "x"}, {"run_id": "run-1"}, {"plugin_identity": "acme/other"}], ids=str)
async def test_wrong_credentials_are_unauthorized(access: RunAccess, wrong: dict[str, str]) -> None:
    """PM-5, PM-6."""
    async with connect(access, **wrong) as connection:
        assert await code_of(connection) == "unauthorized"


async def test_token_of_an_ended_run_is_unauthorized(access: RunAccess, connection: HttpConnection) -> None:
    """PM-4."""
    await access.end()

    assert await code_of(connection) == "unauthorized"


async def test_wrong_argument_is_named_by_the_host(connection: HttpConnection) -> None:
    with pytest.raises(AgentAPIException) as refusal:
        await connection.call("state_get", {"scope": "galaxy", "key": "k"})

    assert refusal.value.error.code == "invalid_argument"
    assert "scope" in refusal.value.error.message


async def test_flood_says_when_to_go_on(
    server: Host, connection: HttpConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-16."""
    serve_methods(server, monkeypatch, limits=CallLimits(calls_per_second=0.1, burst=1))
    await connection.call("state_set", {"scope": "actor", "key": "k", "value": 1})

    with pytest.raises(AgentAPIException) as refusal:
        await connection.call("state_set", {"scope": "actor", "key": "k", "value": 1})

    error = refusal.value.error
    assert (error.code, error.retryable) == ("rate_limited", True)
    assert 9 < float(str(error.details["retry_after_seconds"])) <= 10


async def test_odd_text_arrives_exactly(
    server: Host, connection: HttpConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-31: both ways."""
    seen: list[Any] = []

    async def echo(call: Any, params: Any) -> StateValue:
        seen.append(params.value)
        return StateValue(value=params.value)

    serve_methods(server, monkeypatch, define("state_set", echo))

    answer = await connection.call("state_set", {"scope": "actor", "key": "k", "value": "\ud800\0你"})

    assert seen == ["\ud800\0你"]
    assert answer == {"value": "\ud800\0你"}


async def test_stream_yields_until_its_end(
    server: Host, connection: HttpConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def two(call: Any, params: Any) -> AsyncIterator[ModelStreamEvent]:
        for text in ("a", "b"):
            yield ModelStreamEvent(chunk=MessageChunk(content=text))

    serve_methods(server, monkeypatch, define("invoke_llm_stream", two))

    chunks = AgentRunAPIProxy(CTX, connection).invoke_llm_stream("m1", PROMPT)
    assert [chunk.content async for chunk in chunks] == ["a", "b"]


async def test_failure_between_two_events_reaches_the_runner(
    server: Host, connection: HttpConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(call: Any, params: Any) -> AsyncIterator[ModelStreamEvent]:
        yield ModelStreamEvent(chunk=MessageChunk(content="a"))
        raise HostCallError(ErrorCode.RUNTIME_ERROR, "The model hung up.", retryable=True)

    serve_methods(server, monkeypatch, define("invoke_llm_stream", broken))
    chunks = AgentRunAPIProxy(CTX, connection).invoke_llm_stream("m1", PROMPT)

    assert (await anext(chunks)).content == "a"
    with pytest.raises(AgentAPIException, match="The model hung up") as failure:
        await anext(chunks)

    assert failure.value.error.retryable


@pytest.mark.parametrize("is_stream", [False, True], ids=["call", "stream"])
async def test_call_that_is_given_up_ends_in_the_host(
    server: Host, connection: HttpConnection, monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def stream(call: Any, params: Any) -> AsyncIterator[ModelStreamEvent]:
        yield ModelStreamEvent(chunk=MessageChunk(content="a"))
        await wait()

    async def call_tool(call: Any, params: Any) -> Any:
        await wait()

    serve_methods(server, monkeypatch, define("invoke_llm_stream", stream), define("call_tool", call_tool))
    api = AgentRunAPIProxy(CTX, connection)

    if is_stream:
        async with aclosing(api.invoke_llm_stream("m1", PROMPT)) as chunks:
            await anext(chunks)
            await begun.wait()
    else:
        task = asyncio.create_task(api.call_tool("t1", {}))
        await begun.wait()
        task.cancel()

    await eventually(ended.is_set)
