"""Tool servers and their tools."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from runhost.protocol.host_api import ToolDetail
from stores.errors import SecretNotKept, ToolNotFound, ToolServerChanged, ToolServerNotFound
from stores.tool_servers import ToolRow, ToolServerRow, ToolServerStore, tool_name_for
from tests.fixtures.host import WORKSPACE, Host
from tests.stores.grants import run_with, taken_from

HTTP = {"server_id": "web", "transport": "streamable_http", "url": "https://tools.example/mcp"}
STDIO = {"server_id": "local", "transport": "stdio", "command": ["tools", "--serve"]}
SECRET = "Bearer very-secret"


async def put(host: Host, server: dict[str, Any], **fields: Any) -> ToolServerRow:
    async with host.engine.begin() as connection:
        return await ToolServerStore(connection, WORKSPACE).put(server | fields)


async def offer(host: Host, server_id: str, *names: str, **more: Any) -> list[ToolRow]:
    tools = [ToolDetail(tool_name=name, description=f"Does {name}.", parameters={"type": "object"}) for name in names]
    async with host.engine.begin() as connection:
        return await ToolServerStore(connection, WORKSPACE).replace_tools(server_id, tools, **more)


async def names(host: Host, server_id: str | None = None, workspace: str = WORKSPACE) -> list[str]:
    async with host.engine.connect() as connection:
        tools = await ToolServerStore(connection, workspace).list_tools(server_id=server_id, limit=100)
    return [tool.tool_name for tool in tools]


async def test_server_is_read_as_it_was_put(host: Host) -> None:
    made = await put(host, HTTP, headers={"Authorization": SECRET})
    async with host.engine.connect() as connection:
        assert made == await ToolServerStore(connection, WORKSPACE).get("web")
    assert (made.url, made.headers, made.command, made.env) == (HTTP["url"], {"Authorization": SECRET}, [], {})
    assert (made.is_stale, made.refreshed_at, made.enabled) == (True, None, True)
    assert SECRET not in repr(made)


SECRETS: list[Any] = [
    (HTTP, "headers", {"url": "https://elsewhere.example"}),
    (STDIO, "env", {"command": ["sh", "-c", "env"]}),
]


@pytest.mark.parametrize(("server", "field", "moved"), SECRETS)
async def test_secrets_stay_for_their_address_alone(
    host: Host, server: dict[str, Any], field: str, moved: dict[str, Any]
) -> None:
    secret = {"NAME": SECRET}
    await put(host, server, **{field: secret})
    assert getattr(await put(host, server), field) == secret
    with pytest.raises(SecretNotKept, match=repr(server["server_id"])):
        await put(host, server, **moved)
    assert getattr(await put(host, server, **moved, **{field: {}}), field) == {}
    await put(host, server, **moved)


async def test_tools_are_read_by_their_own_names(host: Host) -> None:
    await put(host, HTTP)
    tools = await offer(host, "web", "search", "fetch")
    assert [(tool.tool_name, tool.remote_name) for tool in tools] == [
        ("web__fetch", "fetch"),
        ("web__search", "search"),
    ]
    async with host.engine.connect() as connection:
        servers = ToolServerStore(connection, WORKSPACE)
        assert await servers.get_tool("web__search") == tools[1]
        server = await servers.get("web")
    assert (tools[1].description, tools[1].parameters) == ("Does search.", {"type": "object"})
    assert (server.is_stale, server.last_error) == (False, None)
    assert server.refreshed_at is not None


async def test_last_answer_of_a_server_replaces_the_one_before(host: Host) -> None:
    await put(host, HTTP)
    await put(host, STDIO)
    await offer(host, "local", "search")
    await offer(host, "web", "search", "fetch")
    await offer(host, "web", "search", "click")
    assert await names(host) == ["local__search", "web__click", "web__search"]
    assert await names(host, "web") == ["web__click", "web__search"]
    assert await names(host, workspace="other") == []
    assert await offer(host, "web") == []


async def test_name_that_comes_twice_counts_once(host: Host) -> None:
    await put(host, HTTP)
    first, second = ToolDetail(tool_name="x", description="first"), ToolDetail(tool_name="x", description="second")
    async with host.engine.begin() as connection:
        (tool,) = await ToolServerStore(connection, WORKSPACE).replace_tools("web", [first, second])
    assert tool.description == "first"


async def test_d_19_failed_refresh_keeps_the_tools_and_marks_them_stale(host: Host) -> None:
    await put(host, HTTP)
    await offer(host, "web", "search")
    async with host.engine.begin() as connection:
        servers = ToolServerStore(connection, WORKSPACE)
        await servers.mark_stale("web", "Nobody answers.")
        server = await servers.get("web")
    assert (server.is_stale, server.last_error) == (True, "Nobody answers.")
    assert await names(host) == ["web__search"]


@pytest.mark.parametrize(
    ("change", "is_stale"), [({}, False), ({"enabled": False}, False), ({"url": "https://else.example"}, True)]
)
async def test_tools_of_another_address_are_stale(host: Host, change: dict[str, Any], is_stale: bool) -> None:
    await put(host, HTTP)
    await offer(host, "web", "search")
    assert (await put(host, HTTP, **change)).is_stale == is_stale


async def test_answer_of_a_server_that_was_changed_meanwhile_is_refused(host: Host) -> None:
    asked = await put(host, HTTP)
    await offer(host, "web", "search", asked_in=asked.updated_at)
    with pytest.raises(ToolServerChanged, match="'web'"):
        await offer(host, "web", "fetch", asked_in=asked.updated_at - timedelta(seconds=1))
    assert await names(host) == ["web__search"]


async def test_absent_ones_are_not_found(host: Host) -> None:
    async with host.engine.connect() as connection:
        servers = ToolServerStore(connection, WORKSPACE)
        with pytest.raises(ToolServerNotFound, match="'web'"):
            await servers.get("web")
        with pytest.raises(ToolServerNotFound, match="'web'"):
            await servers.delete("web")
        with pytest.raises(ToolServerNotFound, match="'web'"):
            await servers.replace_tools("web", [])
        with pytest.raises(ToolNotFound, match="'web__x'"):
            await servers.get_tool("web__x")


async def test_tools_of_a_disabled_server_say_so(host: Host) -> None:
    await put(host, HTTP)
    await offer(host, "web", "search")
    await put(host, HTTP, enabled=False)
    async with host.engine.connect() as connection:
        assert not (await ToolServerStore(connection, WORKSPACE).get_tool("web__search")).enabled


@pytest.mark.parametrize(
    ("way", "taken"),
    [
        ("delete", ["web__fetch", "web__search"]),
        ("disable", ["web__fetch", "web__search"]),
        ("refresh", ["web__fetch"]),
    ],
)
async def test_d_15_tools_that_go_are_taken_back_from_open_runs(host: Host, way: str, taken: list[str]) -> None:
    await put(host, HTTP)
    await offer(host, "web", "search", "fetch")
    run_id = await run_with(host, tools=[{"tool_name": name} for name in ("web__search", "web__fetch", "local__x")])
    if way == "refresh":
        await offer(host, "web", "search")
    elif way == "disable":
        await put(host, HTTP, enabled=False)
    else:
        async with host.engine.begin() as connection:
            await ToolServerStore(connection, WORKSPACE).delete("web")
        assert await names(host) == []
    assert sorted(await taken_from(host, run_id)) == [("tool", name) for name in taken]


async def test_refreshes_and_deletion_at_once_leave_all_or_nothing(host: Host) -> None:
    await put(host, HTTP)
    await offer(host, "web", "a")

    async def delete() -> None:
        async with host.engine.begin() as connection:
            await ToolServerStore(connection, WORKSPACE).delete("web")

    done = await asyncio.gather(offer(host, "web", "a", "b"), delete(), offer(host, "web", "c"), return_exceptions=True)
    assert all(isinstance(result, ToolServerNotFound) for result in done if isinstance(result, Exception))
    assert await names(host) == []


class TestNames:
    @pytest.mark.parametrize(
        ("server", "remote", "name"),
        [
            ("web", "search", "web__search"),
            ("web-1", "web_search-2", "web-1__web_search-2"),
            ("a", "_b", "a___b"),
            ("s" * 32, "t" * 30, f"{'s' * 32}__{'t' * 30}"),
        ],
    )
    def test_fitting_name_is_server_and_tool(self, server: str, remote: str, name: str) -> None:
        assert tool_name_for(server, remote) == name

    @pytest.mark.parametrize("remote", ["files.read", "files/read", "x" * 63, "搜索", "a b", "\ud800"])
    def test_other_name_becomes_one_that_models_take(self, remote: str) -> None:
        name = tool_name_for("web", remote)
        assert re.fullmatch(r"web__[A-Za-z0-9_-]{1,59}-[0-9a-f]{8}", name)
        assert len(name) <= 64

    def test_names_that_clean_up_alike_stay_apart(self) -> None:
        assert len({tool_name_for("web", remote) for remote in ("a.b", "a/b", "a_b", "x" * 99, "x" * 98)}) == 5
