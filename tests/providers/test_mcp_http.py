"""Tool servers over HTTP: redirects, refusals, restarts (SECURITY, SSRF)."""

import pytest

from providers.errors import ProviderError
from providers.mcp import McpToolProvider
from providers.tools import ToolServerAddress
from tests.fixtures.openai_stub import OpenAIStub
from tests.providers.conftest import NewServer
from tests.providers.model_calls import answers


async def failure_of(tools: McpToolProvider, address: ToolServerAddress) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await tools.call(address, "echo", {})
    return caught.value


def address_of(stub: OpenAIStub) -> ToolServerAddress:
    return ToolServerAddress("s", "streamable_http", url=f"{stub.root}/mcp", headers={"X-Key": "secret-key"})


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirect_is_not_followed(tools: McpToolProvider, openai_stub: OpenAIStub, status: int) -> None:
    """Not even on the same host, where its headers would be shown to something else."""
    openai_stub.behave = answers(status, {}, {"Location": f"{openai_stub.root}/elsewhere"})
    error = await failure_of(tools, address_of(openai_stub))
    assert "not followed" in error.message
    assert not error.retryable
    assert {request.path for request in openai_stub.requests} == {"/mcp"}


@pytest.mark.parametrize(
    ("status", "is_retryable"), [(401, False), (403, False), (404, False), (429, True), (500, True), (503, True)]
)
async def test_status_says_whether_to_try_again(
    tools: McpToolProvider, openai_stub: OpenAIStub, status: int, is_retryable: bool
) -> None:
    openai_stub.behave = answers(status, {"detail": "secret-key"}, {"Retry-After": "7"})
    error = await failure_of(tools, address_of(openai_stub))
    assert error.retryable is is_retryable
    assert error.retry_after_seconds == (7.0 if is_retryable else None)
    assert "secret-key" not in error.message


async def test_compressed_answer_is_refused(tools: McpToolProvider, openai_stub: OpenAIStub) -> None:
    """A few bytes of it could be gigabytes."""
    openai_stub.behave = answers(200, {}, {"Content-Encoding": "gzip"})
    assert "compresses" in (await failure_of(tools, address_of(openai_stub))).message


async def test_server_that_is_not_there_may_come_back(tools: McpToolProvider, openai_stub: OpenAIStub) -> None:
    address = address_of(openai_stub)
    await openai_stub.stop()
    error = await failure_of(tools, address)
    assert error.retryable
    assert "cannot be reached" in error.message
    await openai_stub.start()


async def test_server_that_is_no_mcp_server_is_told_apart(tools: McpToolProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = answers(200, {"hello": "world"})
    assert not (await failure_of(tools, address_of(openai_stub))).retryable


@pytest.mark.parametrize("options", [(), ("--old",)], ids=["now", "old"])
async def test_server_that_was_restarted_is_asked_again_once(
    tools: McpToolProvider, serve: NewServer, options: tuple[str, ...]
) -> None:
    """It no longer knows the session, and has not looked at the call."""
    server = await serve(*options)
    assert (await tools.call(server.address(), "echo", {"n": 1})).result == {"n": 1}
    await server.kill()
    await serve("--port", server.port, *options)
    assert (await tools.call(server.address(), "echo", {"n": 2})).result == {"n": 2}
