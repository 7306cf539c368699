"""Tools of real MCP servers, over every transport (PROTOCOL 9.2)."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from providers.errors import AnswerTooLarge, ArgumentRefused, ProviderError, ProviderTimeout
from providers.mcp import McpToolProvider, StdioPolicy
from providers.tools import NoTools, ToolServerAddress
from tests.eventually import eventually
from tests.providers.conftest import PROGRAM, NewServer, servers_in
from tests.providers.tool_server import TOOLS

TOKEN = "tok-secret-of-the-tests"

TRANSPORTS = {"stdio": (), "http": ("--http",), "http-json": ("--http", "--json"), "http-old": ("--http", "--old")}


@pytest.fixture(scope="module")
async def tools() -> AsyncIterator[McpToolProvider]:
    async with McpToolProvider(StdioPolicy((PROGRAM,))) as provider:
        yield provider


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers of this module leave their notes."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module", params=list(TRANSPORTS.values()), ids=list(TRANSPORTS))
async def address(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[ToolServerAddress]:
    """A server for each transport: a program, HTTP with events, HTTP without, HTTP as before 2026."""
    options: tuple[str, ...] = request.param
    if not options:
        yield ToolServerAddress("s", "stdio", (*PROGRAM, str(folder)), env={"TOOL_TOKEN": TOKEN})
        return
    async with servers_in(folder) as start:
        server = await start("--token", TOKEN, *options[1:])
        yield server.address(headers={"Authorization": f"Bearer {TOKEN}"})


async def failure_of(
    tools: McpToolProvider, address: ToolServerAddress, name: str, **parameters: object
) -> ProviderError:
    """Call, and return the error; whatever is said of it must not hold the token."""
    with pytest.raises(ProviderError) as caught:
        await tools.call(address, name, dict(parameters))  # type: ignore[arg-type]
    assert TOKEN not in "".join(traceback.format_exception(caught.value))
    return caught.value


async def test_all_pages_of_tools_are_listed(tools: McpToolProvider, address: ToolServerAddress) -> None:
    found = await tools.list_tools(address)
    assert len({tool.tool_name for tool in found}) == TOOLS
    assert found[0].model_dump() == {
        "tool_name": "echo",
        "human_desc": "Echo",
        "description": "About echo",
        "parameters": {"type": "object"},
    }


async def test_structured_result_is_the_result(tools: McpToolProvider, address: ToolServerAddress) -> None:
    sent = {"text": "持久 \x00 👩‍🚀", "numbers": [1, 2.5, None, True], "deep": {"er": {}}}
    result = await tools.call(address, "echo", sent)
    assert (result.result, result.is_error) == (sent, False)


async def test_contents_are_the_result_as_they_are(tools: McpToolProvider, address: ToolServerAddress) -> None:
    result = await tools.call(address, "parts", {})
    assert result.result == [
        {"type": "text", "text": "你好\x00"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    ]


async def test_error_of_a_tool_is_a_result(tools: McpToolProvider, address: ToolServerAddress) -> None:
    result = await tools.call(address, "fail", {})
    assert result.is_error
    assert result.result == [{"type": "text", "text": "the tool is out of order"}]


async def test_meta_is_passed_on(tools: McpToolProvider, address: ToolServerAddress) -> None:
    result = await tools.call(address, "meta", {}, {"runhost/run_id": "r1"})
    assert isinstance(result.result, dict)
    assert result.result["runhost/run_id"] == "r1"


async def test_error_of_the_server_is_told_without_secrets(tools: McpToolProvider, address: ToolServerAddress) -> None:
    """INV-9: servers quote what they were given."""
    error = await failure_of(tools, address, "secret", token=TOKEN)
    assert "the token [secret] is wrong" in error.message
    assert not error.retryable


async def test_unknown_tool_is_an_error(tools: McpToolProvider, address: ToolServerAddress) -> None:
    assert "Unknown tool: nothing" in (await failure_of(tools, address, "nothing")).message


async def test_huge_result_is_refused_and_the_session_lives(tools: McpToolProvider, address: ToolServerAddress) -> None:
    """D-16."""
    error = await failure_of(tools, address, "huge", size=13_000_000)
    assert isinstance(error, AnswerTooLarge)
    assert (await tools.call(address, "echo", {"n": 1})).result == {"n": 1}


async def test_result_that_is_no_json_of_ours_is_refused(tools: McpToolProvider, address: ToolServerAddress) -> None:
    assert "does not fit 64 bits" in (await failure_of(tools, address, "number")).message


async def test_lone_surrogate_cannot_be_sent(tools: McpToolProvider, address: ToolServerAddress) -> None:
    error = await failure_of(tools, address, "echo", text="\ud800")
    assert isinstance(error, ArgumentRefused)


async def test_call_that_takes_too_long_is_cancelled_at_the_server(
    tools: McpToolProvider, address: ToolServerAddress, folder: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    with pytest.raises(ProviderTimeout):
        await tools.call(address, "wait", {"name": name}, timeout_seconds=0.5)
    if "http-json" not in name:  # such a server has no way to hear of it
        await eventually((folder / f"{name}-cancelled").exists)
    assert (await tools.call(address, "echo", {"n": 1})).result == {"n": 1}


@pytest.mark.parametrize("cancels", [1, 2])
async def test_cancelled_call_is_cancelled_at_the_server(
    tools: McpToolProvider, address: ToolServerAddress, folder: Path, request: pytest.FixtureRequest, cancels: int
) -> None:
    """F-16: also when several cancel it at once."""
    name = request.node.name
    call = asyncio.create_task(tools.call(address, "wait", {"name": name}))
    await eventually((folder / f"{name}-started").exists)
    for _ in range(cancels):
        call.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call
    if "http-json" not in name:
        await eventually((folder / f"{name}-cancelled").exists)
    assert (await tools.call(address, "echo", {"n": 1})).result == {"n": 1}


async def test_calls_share_one_session_and_run_beside_each_other(
    tools: McpToolProvider, address: ToolServerAddress, folder: Path, request: pytest.FixtureRequest
) -> None:
    name, pid = request.node.name, (folder / "pid").read_text()
    waiting = asyncio.create_task(tools.call(address, "wait", {"name": name}))
    await eventually((folder / f"{name}-started").exists)
    results = await asyncio.gather(*(tools.call(address, "echo", {"n": n}) for n in range(20)))
    assert [result.result for result in results] == [{"n": n} for n in range(20)]
    assert (folder / "pid").read_text() == pid
    waiting.cancel()
    await asyncio.wait({waiting})


@pytest.mark.parametrize("options", list(TRANSPORTS.values()), ids=list(TRANSPORTS))
async def test_call_under_way_when_the_server_dies_is_not_repeated(
    tools: McpToolProvider, serve: NewServer, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A tool may have done its work before it was lost."""
    address = ToolServerAddress("s", "stdio", (*PROGRAM, str(tmp_path)))
    if options:
        address = (await serve(*options[1:])).address()
    error = await failure_of(tools, address, "crash")
    assert not error.retryable
    assert "not known" in error.message
    assert (tmp_path / "calls").read_text().split() == ["crash"]


async def test_process_without_tools_says_so() -> None:
    address = ToolServerAddress("s", "stdio", PROGRAM)
    with pytest.raises(ProviderError, match="without a tool provider"):
        await NoTools().list_tools(address)
    with pytest.raises(ProviderError):
        await NoTools().call(address, "echo", {})
