"""Tools through the host API: of a real MCP server, and the host's own one for skills (PROTOCOL 9.2, HOST 6)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host_api.authorization import Authorization
from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.methods import tools as methods
from host_api.methods.state import state_get
from host_api.services import HostServices
from providers.mcp import McpToolProvider, StdioPolicy
from runhost.protocol import ErrorCode
from runhost.protocol.host_api import ToolDetail
from stores.errors import SkillNotFound, ToolNotFound
from stores.skills import SkillStore
from stores.tool_servers import ToolServerStore
from tests.fixtures.host import Host
from tests.host_api.conftest import GrantedRun, NewRun
from tests.providers.conftest import PROGRAM

INSTRUCTIONS = "Read the question twice.\x00 然后回答。"


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[McpToolProvider]:
    async with McpToolProvider(StdioPolicy((PROGRAM,))) as provider:
        yield provider


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tool server leaves its notes."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture
async def services(services: HostServices, provider: McpToolProvider) -> HostServices:
    """The services of all tests, with a provider of tools."""
    return replace(services, tools=provider)


@pytest.fixture
async def registered(host: Host, run: GrantedRun, folder: Path) -> GrantedRun:
    """A run that may use the tools of a server and activate one of two skills."""
    async with host.engine.begin() as connection:
        servers = ToolServerStore(connection, run.row.workspace_id)
        await servers.put({"server_id": "srv", "transport": "stdio", "command": [*PROGRAM, str(folder)]})
        details = [ToolDetail(tool_name=name, description=f"About {name}") for name in ("echo", "meta", "fail", "no")]
        await servers.replace_tools("srv", details)
        for name in ("s1", "s2"):
            await SkillStore(connection, run.row.workspace_id).put({"skill_name": name, "instructions": INSTRUCTIONS})
    granted: dict[str, Any] = run.authorization.model_dump()
    granted["resources"]["tools"] = [
        *({"tool_name": f"srv__{name}", "tool_type": "mcp"} for name in ("echo", "meta", "fail", "no", "gone")),
        {"tool_name": "activate", "tool_type": "skill"},
    ]
    return replace(run, authorization=Authorization.model_validate(granted))


async def refusal(run: GrantedRun, method: MethodDefinition, **params: Any) -> HostCallError:
    with pytest.raises(HostCallError) as caught:
        await run.ask(method, **params)
    return caught.value


async def activate(run: GrantedRun, name: str, **more: Any) -> Any:
    return await run.ask(methods.call_tool, tool_name="activate", parameters={"skill_name": name}, **more)


async def activated(run: GrantedRun) -> Any:
    return (await run.ask(state_get, scope="conversation", key="host.activated_skills")).value


async def test_tool_is_described_under_its_own_name(registered: GrantedRun) -> None:
    detail = await registered.ask(methods.get_tool_detail, tool_name="srv__echo")
    assert (detail.tool_name, detail.description, detail.parameters) == ("srv__echo", "About echo", {})


async def test_tool_is_called_under_its_name_at_the_server(registered: GrantedRun) -> None:
    result = await registered.ask(methods.call_tool, tool_name="srv__echo", parameters={"text": "你好\x00"})
    assert (result.result, result.is_error) == ({"text": "你好\x00"}, False)


async def test_server_is_told_the_run(registered: GrantedRun) -> None:
    result = await registered.ask(methods.call_tool, tool_name="srv__meta")
    assert result.result["runhost/run_id"] == str(registered.run_id)


async def test_error_of_the_tool_is_a_result(registered: GrantedRun) -> None:
    assert (await registered.ask(methods.call_tool, tool_name="srv__fail")).is_error


async def test_error_of_the_server_is_a_runtime_error(registered: GrantedRun) -> None:
    """PROTOCOL 10."""
    error = await refusal(registered, methods.call_tool, tool_name="srv__no")
    assert (error.code, error.retryable) == (ErrorCode.RUNTIME_ERROR, False)
    assert "Unknown tool" in error.message


async def test_parameters_that_cannot_be_sent_are_invalid(registered: GrantedRun) -> None:
    error = await refusal(registered, methods.call_tool, tool_name="srv__echo", parameters={"text": "\ud800"})
    assert (error.code, error.details) == (ErrorCode.INVALID_ARGUMENT, {"field": "parameters"})


@pytest.mark.parametrize("method", [methods.call_tool, methods.get_tool_detail])
async def test_tool_that_is_gone_is_not_found(registered: GrantedRun, method: MethodDefinition) -> None:
    with pytest.raises(ToolNotFound):
        await registered.ask(method, tool_name="srv__gone")


async def test_tool_of_a_disabled_server_is_not_found(host: Host, registered: GrantedRun, folder: Path) -> None:
    command = [*PROGRAM, str(folder)]
    async with host.engine.begin() as connection:
        await ToolServerStore(connection, registered.row.workspace_id).put(
            {"server_id": "srv", "transport": "stdio", "command": command, "enabled": False}
        )
    error = await refusal(registered, methods.call_tool, tool_name="srv__echo")
    assert error.code == ErrorCode.NOT_FOUND


@pytest.mark.parametrize("method", [methods.call_tool, methods.get_tool_detail])
async def test_tool_that_is_not_granted_is_refused(registered: GrantedRun, method: MethodDefinition) -> None:
    """H-A4: in the same words as one that does not exist."""
    for name in ("srv__secret", "activate-other"):
        error = await refusal(registered, method, tool_name=name)
        assert error.code == ErrorCode.UNAUTHORIZED


async def test_skill_answers_its_instructions(registered: GrantedRun) -> None:
    result = await activate(registered, "s1")
    assert result.result == {"skill_name": "s1", "instructions": INSTRUCTIONS}
    assert not result.is_error


async def test_activation_is_kept_once_and_in_order(registered: GrantedRun) -> None:
    """HOST 10: names only."""
    both = [{"skill_name": "s1"}, {"skill_name": "s2"}]
    resources = registered.authorization.resources.model_dump() | {"skills": both}
    run = replace(
        registered,
        authorization=Authorization.model_validate(registered.authorization.model_dump() | {"resources": resources}),
    )
    for name in ("s2", "s1", "s2"):
        await activate(run, name)
    assert await activated(run) == ["s2", "s1"]


async def test_activation_leaves_no_state_where_the_scope_is_closed(registered: GrantedRun) -> None:
    context = registered.authorization.state_context
    closed = registered.narrowed(state_context=context.model_copy(update={"scope_keys": {}}))
    assert (await activate(registered, "s1", authorization=closed)).result["skill_name"] == "s1"
    assert await activated(registered) is None


@pytest.mark.parametrize("name", ["s2", "unknown"])
async def test_skill_that_is_not_granted_is_refused(registered: GrantedRun, name: str) -> None:
    """One that exists and one that does not are refused in the same words."""
    with pytest.raises(HostCallError) as caught:
        await activate(registered, name)
    assert caught.value.code == ErrorCode.UNAUTHORIZED
    assert caught.value.message.replace(repr(name), "?") == (
        "parameters.skill_name: this run may not activate ?; ctx.resources lists what it may."
    )


async def test_skill_that_is_gone_is_not_found(host: Host, registered: GrantedRun) -> None:
    async with host.engine.begin() as connection:
        await SkillStore(connection, registered.row.workspace_id).delete("s1")
    with pytest.raises(SkillNotFound):
        await activate(registered, "s1")


@pytest.mark.parametrize("parameters", [{}, {"skill_name": 1}, {"skill_name": "s1", "path": "/"}])
async def test_activation_without_a_name_is_invalid(registered: GrantedRun, parameters: dict[str, Any]) -> None:
    error = await refusal(registered, methods.call_tool, tool_name="activate", parameters=parameters)
    assert error.code == ErrorCode.INVALID_ARGUMENT


async def test_activation_after_the_attempt_is_refused(registered: GrantedRun) -> None:
    """INV-5."""
    newer = await registered.next_attempt()
    with pytest.raises(HostCallError) as caught:
        await activate(registered, "s1")
    assert caught.value.code == ErrorCode.UNAUTHORIZED
    assert await activated(newer) is None


async def test_activation_is_described_with_the_skills_of_the_run(registered: GrantedRun) -> None:
    detail = await registered.ask(methods.get_tool_detail, tool_name="activate")
    assert detail.parameters["properties"]["skill_name"]["enum"] == ["s1"]
    assert detail.parameters["required"] == ["skill_name"]


async def test_tool_of_a_server_may_be_called_activate(registered: GrantedRun) -> None:
    """Only the snapshot says which of the two a run was granted."""
    resources = registered.authorization.resources.model_dump()
    resources["tools"] = [{"tool_name": "activate", "tool_type": "mcp"}]
    narrowed = Authorization.model_validate(registered.authorization.model_dump() | {"resources": resources})
    with pytest.raises(ToolNotFound):
        await activate(registered, "s1", authorization=narrowed)


async def test_server_of_another_workspace_is_not_found(registered: GrantedRun, new_run: NewRun) -> None:
    foreign = await new_run(workspace_id="w2")
    with pytest.raises(ToolNotFound):
        await foreign.ask(
            methods.call_tool, authorization=registered.authorization, tool_name="srv__echo", parameters={}
        )
