"""What an attempt writes after its fence has passed changes nothing (INV-5, PM-4)."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select, text, update

from host_api.authentication import CredentialsRefused
from host_api.definition import MethodDefinition
from host_api.methods.state import state_delete, state_set
from host_api.methods.storage import (
    delete_plugin_storage,
    delete_workspace_storage,
    set_plugin_storage,
    set_workspace_storage,
)
from stores.storage_tables import plugin_storage
from stores.tables import agent_run, runner_state
from tests.eventually import eventually
from tests.host_api.conftest import GrantedRun

STATE: dict[str, Any] = {"scope": "conversation", "key": "k"}
WRITES: dict[str, tuple[MethodDefinition, dict[str, Any]]] = {
    "state_set": (state_set, STATE | {"value": "late"}),
    "state_set of a new key": (state_set, STATE | {"key": "new", "value": "late"}),
    "state_delete": (state_delete, STATE),
    "set_plugin_storage": (set_plugin_storage, {"key": "k", "value_base64": "bGF0ZQ=="}),
    "delete_plugin_storage": (delete_plugin_storage, {"key": "k"}),
    "set_workspace_storage": (set_workspace_storage, {"key": "k", "value_base64": "bGF0ZQ=="}),
    "delete_workspace_storage": (delete_workspace_storage, {"key": "k"}),
}


@pytest.fixture
async def written(run: GrantedRun) -> GrantedRun:
    """A run that has kept a value everywhere."""
    await run.ask(state_set, **STATE, value="kept")
    for method in (set_plugin_storage, set_workspace_storage):
        await run.ask(method, key="k", value_base64="a2VwdA==")
    return run


async def facts(run: GrantedRun) -> list[tuple[Any, ...]]:
    async with run.host.engine.connect() as connection:
        rows = [tuple(row) for row in await connection.execute(select(runner_state))]
        return rows + [tuple(row) for row in await connection.execute(select(plugin_storage))]


async def refuse_every_write(run: GrantedRun) -> None:
    """Try all writes; each must be refused like a dead token and change nothing."""
    before = await facts(run)
    for name, (method, params) in WRITES.items():
        with pytest.raises(CredentialsRefused):
            await run.ask(method, **params)
        assert await facts(run) == before, name


async def test_inv_5_older_attempt_changes_nothing(written: GrantedRun) -> None:
    later = await written.next_attempt()
    await refuse_every_write(written)
    for method, params in WRITES.values():
        before = await facts(written)
        await later.ask(method, **params)
        assert await facts(written) != before


async def test_inv_5_ended_run_changes_nothing(written: GrantedRun) -> None:
    await written.end()
    await refuse_every_write(written)


async def test_inv_5_attempt_that_has_ended_in_an_open_run_changes_nothing(written: GrantedRun) -> None:
    """The run's last result is in, and nothing has settled the run yet."""
    async with written.host.engine.begin() as connection:
        await connection.execute(
            update(agent_run).where(agent_run.c.run_id == written.run_id).values(attempt_outcome="completed")
        )
    await refuse_every_write(written)


@pytest.mark.parametrize(("method", "params"), WRITES.values(), ids=WRITES)
async def test_inv_5_write_that_waits_for_the_next_attempt_changes_nothing(
    written: GrantedRun, method: MethodDefinition, params: dict[str, Any]
) -> None:
    """The fence moves in a transaction that has begun before the write and commits after it."""
    before = await facts(written)
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'"
    )
    async with written.host.engine.connect() as mover, written.host.engine.connect() as watcher:
        await mover.execute(
            update(agent_run).where(agent_run.c.run_id == written.run_id).values(current_attempt=written.attempt + 1)
        )
        late = asyncio.create_task(written.ask(method, **params))
        await eventually(lambda: watcher.scalar(waiting))
        await mover.commit()
        with pytest.raises(CredentialsRefused):
            await late
    assert await facts(written) == before


@pytest.mark.parametrize("status", ["running", "waiting"])
async def test_run_that_waits_for_people_may_write(written: GrantedRun, status: str) -> None:
    async with written.host.engine.begin() as connection:
        await connection.execute(update(agent_run).where(agent_run.c.run_id == written.run_id).values(status=status))
    for method, params in WRITES.values():
        await written.ask(method, **params)
