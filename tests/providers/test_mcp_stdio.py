"""Tool servers as programs: what they may be, what they see, and that nothing is left of them (SECURITY, stdio)."""

import asyncio
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from providers.errors import ArgumentRefused, NotConfigured, ProviderError, ProviderTimeout
from providers.mcp import McpToolProvider, StdioPolicy
from providers.tools import ToolServerAddress
from tests.eventually import eventually
from tests.processes import is_alive
from tests.providers.conftest import PROGRAM

Program = Callable[..., ToolServerAddress]


def pid_in(path: Path) -> int:
    return int(path.read_text())


async def test_no_program_is_started_unless_the_operator_allows_it(program: Program, tmp_path: Path) -> None:
    async with McpToolProvider() as tools:
        with pytest.raises(NotConfigured, match="RUNHOST_MCP_STDIO_COMMANDS"):
            await tools.list_tools(program())
    assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize(
    ("command", "is_allowed"),
    [
        pytest.param(["sh", "-c", "echo"], True, id="with-its-arguments"),
        pytest.param(["sh", "-c"], True, id="as-it-stands"),
        pytest.param(["sh"], False, id="less"),
        pytest.param(["sh", "-x", "-c"], False, id="others-between"),
        pytest.param(["/bin/sh", "-c"], False, id="other-spelling"),
        pytest.param([], False, id="none"),
    ],
)
def test_policy_allows_beginnings_of_command_lines(command: list[str], is_allowed: bool) -> None:
    policy = StdioPolicy.parse(["sh -c", "", "uvx 'mcp server'"])
    assert policy.commands == (("sh", "-c"), ("uvx", "mcp server"))
    if is_allowed:
        assert policy.resolve(command)[1:] == command[1:]
    else:
        with pytest.raises(NotConfigured):
            policy.resolve(command)


def test_program_that_is_not_installed_is_named() -> None:
    with pytest.raises(NotConfigured, match=r"'no-such-program'.*not installed"):
        StdioPolicy.parse(["no-such-program"]).resolve(["no-such-program"])


async def test_server_sees_none_of_the_secrets_of_its_host(
    tools: McpToolProvider, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-5: the environment is a list of what may be seen."""
    monkeypatch.setenv("RUNHOST_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    seen = (await tools.call(program(env={"TOOL_TOKEN": "t"}), "env", {})).result
    assert isinstance(seen, dict)
    assert seen["TOOL_TOKEN"] == "t"
    assert seen.keys() - {"LC_CTYPE"} <= {"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "TOOL_TOKEN"}


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PATH", "NODE_OPTIONS", "PYTHONPATH", "npm_config_registry", "BASH_ENV", "A=B", ""]
)
async def test_environment_cannot_change_what_is_run(tools: McpToolProvider, program: Program, name: str) -> None:
    with pytest.raises(ArgumentRefused, match=r"^env\."):
        await tools.call(program(env={name: "x"}), "echo", {})


async def test_leaving_ends_the_server_and_what_it_started(program: Program, tmp_path: Path) -> None:
    async with McpToolProvider(StdioPolicy((PROGRAM,))) as tools:
        await tools.call(program("--child"), "echo", {})
        server, child = pid_in(tmp_path / "pid"), pid_in(tmp_path / "child")
        assert is_alive(server)
        assert is_alive(child)
        assert os.getpgid(child) == server != os.getpgid(0)
    assert not is_alive(server)
    assert not is_alive(child)


async def test_server_that_dies_is_started_anew_with_the_next_call(
    tools: McpToolProvider, program: Program, tmp_path: Path
) -> None:
    address = program("--child")
    await tools.call(address, "echo", {})
    server, child = pid_in(tmp_path / "pid"), pid_in(tmp_path / "child")

    async def answers() -> bool:
        with suppress(ProviderError):
            return (await tools.call(address, "echo", {"n": 1})).result == {"n": 1}
        return False

    # Its child holds the pipes open, so that their end does not tell.
    os.kill(server, 9)
    await eventually(answers)
    assert pid_in(tmp_path / "pid") != server
    await eventually(lambda: not is_alive(child))


async def test_server_is_ended_when_it_is_idle(program: Program, tmp_path: Path) -> None:
    async with McpToolProvider(StdioPolicy((PROGRAM,)), idle_seconds=0.1) as tools:
        await tools.call(program(), "echo", {})
        await eventually(lambda: not is_alive(pid_in(tmp_path / "pid")))
        assert (await tools.call(program(), "echo", {"n": 1})).result == {"n": 1}


async def test_what_a_server_writes_besides_messages_is_no_matter(tools: McpToolProvider, program: Program) -> None:
    for name in ("garbage", "chatter"):
        assert (await tools.call(program(), name, {})).result == {}


async def test_server_that_does_not_start_says_why_without_secrets(tools: McpToolProvider, program: Program) -> None:
    with pytest.raises(ProviderError) as caught:
        await tools.list_tools(program("--complain", env={"TOOL_TOKEN": "tok-secret"}))
    assert "ended before it was ready; it says: no such token [secret]" in caught.value.message


async def test_server_that_never_answers_is_ended(tmp_path: Path) -> None:
    script = f"echo $$ > {shlex.quote(str(tmp_path / 'pid'))}; exec sleep 600"
    address = ToolServerAddress("silent", "stdio", ("sh", "-c", script))
    async with McpToolProvider(StdioPolicy((("sh",),)), open_seconds=1.0) as tools:
        with pytest.raises(ProviderTimeout, match=r"was not ready within 1 s"):
            await tools.list_tools(address)
        await eventually(lambda: not is_alive(pid_in(tmp_path / "pid")))


async def test_leaving_ends_a_server_that_is_not_ready(tmp_path: Path) -> None:
    script = f"echo $$ > {shlex.quote(str(tmp_path / 'pid'))}; exec sleep 600"
    async with McpToolProvider(StdioPolicy((("sh",),))) as tools:
        call = asyncio.create_task(tools.list_tools(ToolServerAddress("silent", "stdio", ("sh", "-c", script))))
        await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    assert not is_alive(pid_in(tmp_path / "pid"))
    with pytest.raises(ProviderError, match="stopping"):
        await call


async def test_caller_that_gives_up_does_not_spoil_the_opening_for_others(
    tools: McpToolProvider, program: Program
) -> None:
    first, second = (asyncio.create_task(tools.call(program(), "echo", {"n": n})) for n in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).result == {"n": 2}
    assert first.cancelled()


async def test_workspaces_do_not_share_a_server(tools: McpToolProvider, program: Program, tmp_path: Path) -> None:
    pids: set[int] = set()
    for workspace in ("w1", "w2"):
        await tools.call(program(workspace_id=workspace), "echo", {})
        pids.add(pid_in(tmp_path / "pid"))
    assert len(pids) == 2
    assert all(is_alive(pid) for pid in pids)


async def test_idle_session_makes_room_for_another(program: Program, tmp_path: Path) -> None:
    async with McpToolProvider(StdioPolicy((PROGRAM,)), max_sessions=1) as tools:
        await tools.call(program(workspace_id="w1"), "echo", {})
        first = pid_in(tmp_path / "pid")
        waiting = asyncio.create_task(tools.call(program(workspace_id="w2"), "wait", {}))
        await eventually((tmp_path / "wait-started").exists, within_seconds=30)
        await eventually(lambda: not is_alive(first))
        with pytest.raises(ProviderError, match="busy") as caught:
            await tools.call(program(workspace_id="w3"), "echo", {})
        assert caught.value.retryable
        waiting.cancel()
        await asyncio.wait({waiting})


def test_address_hides_its_secrets() -> None:
    """INV-9."""
    address = ToolServerAddress("s", "stdio", ("x",), env={"A": "secret"}, headers={"B": "secret"})
    assert "secret" not in repr(address)
    assert "secret" not in address.identity
