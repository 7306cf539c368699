"""What `runs.prepare` freezes: one build, told to the runner and checked in its calls (D-15, HOST 6 to 8)."""

from typing import Any
from uuid import UUID

import pytest
import structlog
from sqlalchemy import event

from host_api.authorization import Authorization
from runhost.protocol import AgentResources, AgentRunContext
from stores.tool_servers import ToolServerStore
from tests.fixtures import registries
from tests.fixtures.host import Host

CONFIG = {"model": {"primary": "gone", "fallbacks": ["gpt"]}, "bases": ["kb"]}
POLICY = {"allowed_tool_names": ["s__search", "never", "ever"]}


@pytest.fixture
async def stocked(host: Host) -> Host:
    """A workspace with something of everything, its secrets among it."""
    await registries.announce_runners(host.engine)
    async with host.engine.begin() as connection:
        await registries.put_model(connection, "gpt", context_window_tokens=128_000, api_key="sk-secret-1")
        await registries.put_tools(connection, {"search": "Searches."}, headers={"X-Key": "secret-2"})
        await registries.put_base(connection, "kb", "d1")
        await registries.put_skill(connection, "write", instructions="secret-3")
    return host


async def prepared(host: Host, **more: Any) -> UUID:
    fields = {"runner_id": registries.CAPABLE, "runner_config": CONFIG, "resource_policy": POLICY} | more
    run_id = UUID((await host.new_run(**fields)).run_id)
    await registries.prepare(host.engine, run_id)
    return run_id


async def frozen(host: Host, run_id: UUID) -> tuple[Authorization, AgentRunContext]:
    run = await host.load(run_id)
    return Authorization.model_validate(run.authorization), AgentRunContext.model_validate(run.context)


async def test_runner_is_told_what_its_calls_are_checked_against(stocked: Host) -> None:
    authorization, context = await frozen(stocked, await prepared(stocked))
    assert context.resources == authorization.resources
    assert context.context.available_apis == authorization.available_apis
    assert authorization.operations("model", "gpt") == {"invoke", "stream"}
    assert authorization.operations("tool", "s__search") == {"detail", "call"}
    assert authorization.operations("knowledge_base", "kb") == {"list", "retrieve"}
    assert authorization.operations("skill", "write") == {"activate"}
    assert authorization.available_apis.history_page
    assert authorization.resources.storage.plugin_storage
    assert authorization.plugin_identity == "tests/capable"


async def test_window_is_that_of_the_first_model_that_resolves(stocked: Host) -> None:
    """H-C6, F-8."""
    _, context = await frozen(stocked, await prepared(stocked))
    assert context.runtime.metadata["model_context_window_tokens"] == 128_000


async def test_no_secret_of_a_registry_is_frozen(stocked: Host) -> None:
    """INV-9."""
    run = await stocked.load(await prepared(stocked))
    assert "secret" not in str(run.authorization)
    assert "secret" not in str(run.context)


async def test_unknown_ids_are_a_warning_without_the_ids(stocked: Host) -> None:
    with structlog.testing.capture_logs() as logs:
        await prepared(stocked)
    left_out = [entry for entry in logs if entry["event"] == "snapshot.left_out"]
    assert {entry["kind"]: entry["count"] for entry in left_out} == {"model": 1, "tool": 2}
    assert {entry["log_level"] for entry in left_out} == {"warning"}
    assert not any(name in str(left_out) for name in ("gone", "never", "ever"))


async def test_second_preparation_changes_nothing(stocked: Host) -> None:
    run_id = await prepared(stocked)
    before = await frozen(stocked, run_id)
    async with stocked.engine.begin() as connection:
        await registries.put_model(connection, "gone")
        await registries.put_skill(connection, "read")
    await registries.prepare(stocked.engine, run_id)
    assert await frozen(stocked, run_id) == before


async def test_disabled_server_grants_no_tool(stocked: Host) -> None:
    async with stocked.engine.begin() as connection:
        await ToolServerStore(connection, registries.WORKSPACE).put(
            {"server_id": "s", "transport": "streamable_http", "url": "http://tools.test/mcp", "enabled": False}
        )
    authorization, _ = await frozen(stocked, await prepared(stocked))
    assert [tool.tool_name for tool in authorization.resources.tools] == ["activate"]


async def test_runner_that_asks_for_nothing_pays_for_nothing(stocked: Host) -> None:
    """Every plain run is prepared on this path."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(stocked.engine.sync_engine, "before_cursor_execute", note)
    run_id = await prepared(stocked, runner_id=registries.MODEST)
    event.remove(stocked.engine.sync_engine, "before_cursor_execute", note)
    assert not [statement for statement in statements if "'models' AS kind" in statement or "_shared" in statement]
    authorization, context = await frozen(stocked, run_id)
    assert authorization.resources == context.resources == AgentResources()
    assert context.runtime.metadata["model_context_window_tokens"] is None
