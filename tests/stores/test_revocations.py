"""Taking grants back (D-15, INV-10)."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from host_api.authorization import Authorization, Revocation
from runhost.protocol import RunStatus
from stores.errors import NotGranted, RunNotFound, RunTerminal
from stores.models import ModelStore
from stores.revocations import RevocationStore, revoke_everywhere
from stores.runs import RunEnd, RunStore
from tests.eventually import eventually
from tests.fixtures import registries
from tests.fixtures.host import Host

CONFIG = {"model": {"primary": "gpt", "fallbacks": ["small"]}, "bases": ["kb"]}
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
async def stocked(host: Host) -> Host:
    """A workspace with two models, a tool, a base with a document, and a skill."""
    await registries.announce_runners(host.engine)
    async with host.engine.begin() as connection:
        await registries.put_model(connection, "gpt")
        await registries.put_model(connection, "small")
        await registries.put_tools(connection, {"search": "Searches."})
        await registries.put_base(connection, "kb", "d1")
        await registries.put_skill(connection, "write")
    return host


async def created(host: Host) -> UUID:
    run = await host.new_run(
        runner_id=registries.CAPABLE, runner_config=CONFIG, resource_policy={"allowed_tool_names": ["s__search"]}
    )
    return UUID(run.run_id)


async def prepared(host: Host) -> UUID:
    run_id = await created(host)
    await registries.prepare(host.engine, run_id)
    return run_id


async def revoke(host: Host, run_id: UUID, *what: Any, workspace: str = registries.WORKSPACE) -> int | None:
    async with host.engine.begin() as connection:
        return await RevocationStore(connection).revoke(workspace, run_id, *what)


async def end(host: Host, run_id: UUID) -> None:
    async with host.engine.begin() as connection:
        runs = RunStore(connection)
        await runs.settle(await runs.load(run_id, lock=True), RunEnd(RunStatus.FAILED, "runner.error"))


async def delete_model(host: Host, model_id: str = "gpt") -> None:
    async with host.engine.begin() as connection:
        await ModelStore(connection, registries.WORKSPACE).delete(model_id)


async def can_reach(host: Host, run_id: UUID) -> set[str]:
    found = (await registries.effective(host.engine, run_id)).resources
    names = [model.model_id for model in found.models] + [tool.tool_name for tool in found.tools]
    names += [base.kb_id for base in found.knowledge_bases] + [skill.skill_name for skill in found.skills]
    return {*names, *(str(file.file_name) for file in found.files)}


ALL = {"gpt", "small", "s__search", "activate", "kb", "write", "d1"}


@pytest.mark.parametrize(
    ("kind", "id_", "left"),
    [
        ("model", "gpt", ALL - {"gpt"}),
        ("tool", "s__search", ALL - {"s__search"}),
        ("skill", "write", ALL - {"write"}),
        ("knowledge_base", "kb", ALL - {"kb", "d1"}),
        ("run", None, set()),
    ],
)
async def test_revoked_grant_is_gone_and_in_the_ledger(stocked: Host, kind: Any, id_: Any, left: set[str]) -> None:
    """D-13: the files of a base go with it."""
    run_id = await prepared(stocked)
    assert await can_reach(stocked, run_id) == ALL
    assert await revoke(stocked, run_id, kind, id_, "why not") == 1
    assert await can_reach(stocked, run_id) == left
    (row,) = await stocked.ledger(str(run_id))
    assert (row.type, row.source, row.attempt) == ("host.grant_revoked", "host", None)
    assert row.data == {"kind": kind, "id": id_, "reason": "why not"}


async def test_file_of_a_document_can_be_taken_back_alone(stocked: Host) -> None:
    run_id = await prepared(stocked)
    (file,) = (await registries.effective(stocked.engine, run_id)).resources.files
    assert await revoke(stocked, run_id, "file", file.file_id) == 1
    assert await can_reach(stocked, run_id) == ALL - {"d1"}


async def test_taking_a_whole_run_back_closes_its_apis_and_its_state(stocked: Host) -> None:
    run_id = await prepared(stocked)
    before = await registries.effective(stocked.engine, run_id)
    assert before.available_apis.state
    assert before.state_context.scope_keys
    await revoke(stocked, run_id, "run")
    after = await registries.effective(stocked.engine, run_id)
    assert not any(after.available_apis.model_dump().values())
    assert after.state_context.scope_keys == {}


async def test_operations_looked_up_before_do_not_outlive_a_revocation(stocked: Host) -> None:
    """A process keeps a run's snapshot in parsed form; what it has looked up there must not come along."""
    run_id = await prepared(stocked)
    snapshot = Authorization.model_validate((await stocked.load(run_id)).authorization)
    assert snapshot.operations("model", "gpt") == {"invoke", "stream"}
    await revoke(stocked, run_id, "model", "gpt")
    async with stocked.engine.connect() as connection:
        stored = await RevocationStore(connection).read(registries.WORKSPACE, run_id)
    left = snapshot.without([Revocation.model_validate(entry) for entry in stored.revocations])
    assert left.operations("model", "gpt") == frozenset()
    assert left.operations("model", "small") == {"invoke", "stream"}


async def test_revoking_again_writes_nothing(stocked: Host) -> None:
    run_id = await prepared(stocked)
    await revoke(stocked, run_id, "model", "gpt")
    assert await revoke(stocked, run_id, "model", "gpt") is None
    await revoke(stocked, run_id, "run")
    assert await revoke(stocked, run_id, "run") is None
    assert await revoke(stocked, run_id, "model", "small") is None
    assert len(await stocked.ledger(str(run_id))) == 2


@pytest.mark.parametrize("what", [("model", "other"), ("tool", "gpt"), ("skill", "gpt"), ("file", "gpt")], ids=str)
async def test_what_was_never_granted_is_refused(stocked: Host, what: tuple[str, str]) -> None:
    run_id = await prepared(stocked)
    with pytest.raises(NotGranted, match=repr(what[1])):
        await revoke(stocked, run_id, *what)
    assert await stocked.ledger(str(run_id)) == []


async def test_ended_run_has_nothing_to_lose(stocked: Host) -> None:
    run_id = await prepared(stocked)
    await end(stocked, run_id)
    with pytest.raises(RunTerminal, match="failed"):
        await revoke(stocked, run_id, "run")


async def test_foreign_run_looks_like_an_unknown_one(stocked: Host) -> None:
    run_id, unknown = await prepared(stocked), uuid.uuid4()
    refusals: list[str] = []
    for id_ in (run_id, unknown):
        with pytest.raises(RunNotFound) as refusal:
            await revoke(stocked, id_, "run", workspace="w2")
        refusals.append(str(refusal.value).replace(str(id_), "ID"))
    assert refusals[0] == refusals[1]


async def test_run_that_is_not_prepared_yet_comes_without_what_it_lost(stocked: Host) -> None:
    run_id = await created(stocked)
    assert await revoke(stocked, run_id, "model", "gpt") == 1
    await registries.prepare(stocked.engine, run_id)
    assert await can_reach(stocked, run_id) == ALL - {"gpt"}


class TestEverywhere:
    async def test_open_runs_that_hold_it_lose_it_and_no_others(self, stocked: Host) -> None:
        holders = sorted([await prepared(stocked) for _ in range(3)])
        ended, lost = await prepared(stocked), await prepared(stocked)
        await end(stocked, ended)
        await revoke(stocked, lost, "model", "gpt")
        bare = UUID((await stocked.new_run([])).run_id)
        async with stocked.engine.begin() as connection:
            taken = await revoke_everywhere(connection, registries.WORKSPACE, "model", "gpt", "gone")
        assert sorted(taken) == [(run_id, 1) for run_id in holders]
        for run_id in holders:
            assert await can_reach(stocked, run_id) == ALL - {"gpt"}
        assert await can_reach(stocked, ended) == ALL
        assert await stocked.ledger(str(bare)) == []
        assert len(await stocked.ledger(str(lost))) == 1

    async def test_other_workspaces_keep_theirs(self, stocked: Host) -> None:
        run_id = await prepared(stocked)
        async with stocked.engine.begin() as connection:
            assert await revoke_everywhere(connection, "w2", "model", "gpt") == []
        assert await can_reach(stocked, run_id) == ALL

    async def test_ids_that_jsonb_cannot_hold_are_found(self, stocked: Host) -> None:
        """D-31: what is asked for is written as what is stored."""
        async with stocked.engine.begin() as connection:
            await registries.put_model(connection, "odd \ufdd0 id")
        run = await stocked.new_run(runner_id=registries.CAPABLE, runner_config={"model": "odd \ufdd0 id"})
        await registries.prepare(stocked.engine, run.run_id)
        async with stocked.engine.begin() as connection:
            taken = await revoke_everywhere(connection, registries.WORKSPACE, "model", "odd \ufdd0 id")
        assert taken == [(UUID(run.run_id), 1)]


class TestRace:
    """A deletion and a preparation at the same time: the run never keeps what was deleted."""

    async def test_preparation_that_has_read_is_waited_for_and_loses_it(
        self, stocked: Host, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_id = await created(stocked)
        deleting: list[asyncio.Task[None]] = []
        freeze = RunStore.freeze

        async def freeze_late(self: RunStore, *args: Any, **options: Any) -> bool:
            deleting.append(asyncio.create_task(delete_model(stocked)))
            await eventually(lambda: _count(stocked.engine))
            return await freeze(self, *args, **options)

        monkeypatch.setattr(RunStore, "freeze", freeze_late)
        await registries.prepare(stocked.engine, run_id)
        await deleting[0]
        snapshot = Authorization.model_validate((await stocked.load(run_id)).authorization)
        assert snapshot.operations("model", "gpt")
        assert await can_reach(stocked, run_id) == ALL - {"gpt"}

    async def test_preparation_that_comes_later_waits_and_does_not_find_it(self, stocked: Host) -> None:
        run_id = await created(stocked)
        async with stocked.engine.begin() as connection:
            await ModelStore(connection, registries.WORKSPACE).delete("gpt")
            preparing = asyncio.create_task(registries.prepare(stocked.engine, run_id))
            await eventually(lambda: _count(stocked.engine))
        await preparing
        assert await stocked.ledger(str(run_id)) == []
        assert await can_reach(stocked, run_id) == ALL - {"gpt"}

    async def test_many_at_once_do_not_wait_for_each_other_for_ever(self, stocked: Host) -> None:
        run_ids = [await prepared(stocked) for _ in range(6)]
        new = [await created(stocked) for _ in range(3)]

        async def everywhere(kind: Any, id_: str) -> None:
            async with stocked.engine.begin() as connection:
                await revoke_everywhere(connection, registries.WORKSPACE, kind, id_)

        async def one(run_id: UUID) -> None:
            await revoke(stocked, run_id, "tool", "activate")

        work: list[Callable[[], Awaitable[Any]]] = [
            *(lambda kind=kind, id_=id_: everywhere(kind, id_) for kind, id_ in (("model", "gpt"), ("skill", "write"))),
            lambda: everywhere("knowledge_base", "kb"),
            *(lambda run_id=run_id: one(run_id) for run_id in reversed(run_ids)),
            *(lambda run_id=run_id: registries.prepare(stocked.engine, run_id) for run_id in new),
        ]
        await asyncio.gather(*(act() for act in work))
        for run_id in run_ids:
            assert await can_reach(stocked, run_id) == {"small", "s__search"}
            assert [row.sequence for row in await stocked.ledger(str(run_id))] == [1, 2, 3, 4]


async def _count(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return await connection.scalar(text(WAITING)) or 0
