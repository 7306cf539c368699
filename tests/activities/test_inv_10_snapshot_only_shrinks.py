"""What a running run may reach never grows, whatever is granted, taken away, changed or tried again (INV-10, D-15)."""

import asyncio
import contextlib
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy.ext.asyncio import AsyncEngine

from host_api.authentication import Authenticator
from host_api.authorization import Authorization
from runhost.protocol import AgentConfig
from stores.agents import AgentStore
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.driver import driver_pool
from stores.engine import build_engine
from stores.errors import NotFound, NotGranted
from stores.ingest import Ingest
from stores.knowledge import KnowledgeStore
from stores.models import ModelStore
from stores.revocations import RevocationStore, revoke_everywhere
from stores.skills import SkillStore
from tests.fixtures import registries
from tests.fixtures.host import make_envelope

_T = TypeVar("_T")
_Reach = frozenset[tuple[str, ...]]

MODELS = st.sampled_from(["m1", "m2", "m3"])
TOOLS = ["t1", "t2"]
SKILLS = st.sampled_from(["k1", "k2"])
BASES = st.sampled_from(["b1", "b2"])
SUBSETS = st.lists(st.sampled_from(["m1", "m2", "m3", "s__t1", "s__t2", "b1", "b2", "k1", "k2"]), unique=True)
GRANTS = st.one_of(
    st.tuples(st.just("model"), MODELS),
    st.tuples(st.just("tool"), st.sampled_from(["s__t1", "s__t2", "activate"])),
    st.tuples(st.just("knowledge_base"), BASES),
    st.tuples(st.just("skill"), SKILLS),
    st.tuples(st.just("run"), st.none()),
)


@dataclass
class Stage:
    """A database, and a process that has answered calls all along: it remembers what it has parsed."""

    runner: asyncio.Runner
    engine: AsyncEngine
    pool: asyncpg.Pool
    authenticator: Authenticator

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self.runner.run(work)


@dataclass
class SeenRun:
    """A run, and the least that it could ever reach since it was prepared."""

    run_id: UUID
    reach: _Reach | None = None
    token: str | None = None
    executions: int = 0
    lost: set[tuple[str, str]] = field(default_factory=set)


def reach_of(found: Authorization) -> _Reach:
    """Return everything that a call could pass with."""
    resources = found.resources
    listed = [("model", item.model_id) for item in resources.models]
    listed += [("tool", item.tool_name) for item in resources.tools]
    listed += [("knowledge_base", item.kb_id) for item in resources.knowledge_bases]
    listed += [("skill", item.skill_name) for item in resources.skills]
    listed += [("file", item.file_id) for item in resources.files]
    # By what is looked up in a call, over every id that is ever used here, listed or not.
    ids = {*listed, *(("model", f"m{n}") for n in (1, 2, 3)), *(("tool", f"s__t{n}") for n in (1, 2))}
    ids |= {("tool", "activate"), *((kind, f"{kind[0]}{n}") for kind in ("b", "k") for n in (1, 2))}
    reach = {(*id_, operation) for id_ in ids for operation in found.operations(id_[0], id_[1])}  # type: ignore[arg-type]
    reach |= {("api", name) for name, is_on in found.available_apis if is_on}
    reach |= {("storage", name) for name, is_on in resources.storage if is_on}
    return frozenset(reach | {("state", *scope) for scope in found.state_context.scope_keys.items()})


class Machine(RuleBasedStateMachine):
    """Grants and revocations in a workspace of its own."""

    stage: Stage
    runs: Bundle[SeenRun] = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.workspace = uuid.uuid4().hex
        self.seen: list[SeenRun] = []

    @initialize(target=runs)
    def start(self) -> SeenRun:
        """Begin with a run that has called: what it may do is in the memory of a process."""
        self.stage.do(self._stock())
        run = self._new_run()
        self.prepare(run)
        self.nothing_is_gained()
        self.open_attempt(run)
        return run

    async def _stock(self) -> None:
        async with self.stage.engine.begin() as connection:
            await registries.put_model(connection, "m1", self.workspace)
            await registries.put_tools(connection, dict.fromkeys(TOOLS), workspace=self.workspace)
            await registries.put_base(connection, "b1", "d1", workspace=self.workspace)
            await registries.put_skill(connection, "k1", self.workspace)
        await self._put_agent(["m1", "s__t1", "b1"], {})

    async def _put_agent(self, allowed: list[str], more: dict[str, Any]) -> None:
        policy = {
            "allowed_model_uuids": [name for name in allowed if name[0] == "m"],
            "allowed_tool_names": [name for name in allowed if name[0] == "s"],
            "allowed_kb_uuids": [name for name in allowed if name[0] == "b"],
        }
        config = {"runner_id": registries.CAPABLE, "resource_policy": policy | more}
        async with self.stage.engine.begin() as connection:
            await AgentStore(connection, self.workspace).put("a", AgentConfig.model_validate(config))

    @rule(allowed=SUBSETS, is_open=st.booleans())
    def change_agent(self, allowed: list[str], is_open: bool) -> None:
        self.stage.do(self._put_agent(allowed, {"allow_workspace_storage": is_open, "allow_history": is_open}))

    @rule(target=runs)
    def create_run(self) -> SeenRun:
        return self._new_run()

    def _new_run(self) -> SeenRun:
        async def create() -> SeenRun:
            async with self.stage.engine.begin() as connection:
                envelope = make_envelope(workspace_id=self.workspace)
                accepted = await Ingest(connection, self.workspace).accept_run(envelope, "a", {})
            assert accepted.new_run is not None
            return SeenRun(UUID(accepted.new_run.run_id))

        self.seen.append(self.stage.do(create()))
        return self.seen[-1]

    @rule(run=runs)
    def prepare(self, run: SeenRun) -> None:
        self.stage.do(registries.prepare(self.stage.engine, run.run_id))

    @rule(run=runs, model_id=MODELS)
    def prepare_while_a_model_is_deleted(self, run: SeenRun, model_id: str) -> None:
        async def both() -> None:
            await asyncio.gather(registries.prepare(self.stage.engine, run.run_id), self._delete_model(model_id))

        self.stage.do(both())
        for seen in self.seen:
            reach = self.stage.do(self._stored(seen))
            assert ("model", model_id, "invoke") not in (reach or frozenset())

    @rule(run=runs)
    def open_attempt(self, run: SeenRun) -> None:
        async def open_() -> None:
            run.executions += 1
            execution = ActivityExecution("t", "1", run.executions, "worker")
            async with self.stage.engine.begin() as connection:
                opened = await AttemptStore(connection).open(run.run_id, execution)
            assert isinstance(opened, OpenAttempt)
            run.token = opened.token

        if run.reach is not None:
            self.stage.do(open_())

    @rule(run=runs, what=GRANTS)
    def revoke(self, run: SeenRun, what: tuple[Any, str | None]) -> None:
        async def take() -> None:
            async with self.stage.engine.begin() as connection:
                await RevocationStore(connection).revoke(self.workspace, run.run_id, *what)

        with contextlib.suppress(NotGranted):
            self.stage.do(take())
        run.lost.add((what[0], what[1] or ""))

    @rule(what=GRANTS.filter(lambda what: what[0] != "run"))
    def revoke_from_all(self, what: tuple[Any, str]) -> None:
        async def take() -> None:
            async with self.stage.engine.begin() as connection:
                await revoke_everywhere(connection, self.workspace, *what)

        self.stage.do(take())

    @rule(model_id=MODELS, window=st.integers(1, 9))
    def put_model(self, model_id: str, window: int) -> None:
        self._put(registries.put_model, model_id, self.workspace, context_window_tokens=window)

    @rule(model_id=MODELS)
    def delete_model(self, model_id: str) -> None:
        self.stage.do(self._delete_model(model_id))

    @rule(offered=st.lists(st.sampled_from(TOOLS), unique=True))
    def offer_tools(self, offered: list[str]) -> None:
        self._put(registries.put_tools, dict.fromkeys(offered), workspace=self.workspace)

    @rule(name=SKILLS)
    def put_skill(self, name: str) -> None:
        self._put(registries.put_skill, name, self.workspace)

    @rule(name=SKILLS)
    def delete_skill(self, name: str) -> None:
        async def delete() -> None:
            async with self.stage.engine.begin() as connection:
                await SkillStore(connection, self.workspace).delete(name)

        with contextlib.suppress(NotFound):
            self.stage.do(delete())

    @rule(kb_id=BASES, document_id=st.sampled_from(["d1", "d2"]))
    def put_document(self, kb_id: str, document_id: str) -> None:
        self._put(registries.put_base, kb_id, document_id, workspace=self.workspace)

    @rule(kb_id=BASES)
    def delete_base(self, kb_id: str) -> None:
        async def delete() -> None:
            async with self.stage.engine.begin() as connection:
                await KnowledgeStore(connection, self.workspace).delete(kb_id)
                await revoke_everywhere(connection, self.workspace, "knowledge_base", kb_id)

        with contextlib.suppress(NotFound):
            self.stage.do(delete())

    @invariant()
    def nothing_is_gained(self) -> None:
        for run in self.seen:
            reach = self.stage.do(self._stored(run))
            if reach is None:
                continue
            assert run.reach is None or reach <= run.reach
            assert not {(kind, id_) for kind, id_, *_ in (item for item in reach if len(item) > 2)} & run.lost
            assert ("run", "") not in run.lost or not reach
            run.reach = reach
            if run.token is not None:
                assert self.stage.do(self._called(run.token)) == reach

    async def _stored(self, run: SeenRun) -> _Reach | None:
        async with self.stage.engine.connect() as connection:
            stored = await RevocationStore(connection).read(self.workspace, run.run_id)
        if stored.snapshot is None:
            return None
        return reach_of(await registries.effective(self.stage.engine, run.run_id, self.workspace))

    async def _called(self, token: str) -> _Reach:
        """Return what a call finds, in a process that has seen the run before."""
        session = await self.stage.authenticator.find(token)
        assert session is not None
        return reach_of(session.authorization)

    async def _delete_model(self, model_id: str) -> None:
        with contextlib.suppress(NotFound):
            async with self.stage.engine.begin() as connection:
                await ModelStore(connection, self.workspace).delete(model_id)

    def _put(self, put: Any, *args: Any, **more: Any) -> None:
        async def write() -> None:
            async with self.stage.engine.begin() as connection:
                await put(connection, *args, **more)

        self.stage.do(write())


def play(database_url: str) -> None:
    """Play all games, on an event loop of their own: the steps of a machine are no coroutines."""
    with asyncio.Runner() as runner:
        engine = build_engine(database_url, pool_size=5, application_name="tests")
        pool = driver_pool(database_url, size=2, application_name="tests")

        async def open_pool() -> None:
            await pool
            await registries.announce_runners(engine)

        runner.run(open_pool())
        Machine.stage = Stage(runner, engine, pool, Authenticator(pool))
        try:
            run_state_machine_as_test(
                Machine,
                settings=settings(
                    max_examples=15,
                    stateful_step_count=20,
                    deadline=None,
                    # A game of twenty steps can be read as it is; making it shorter takes minutes.
                    phases=[Phase.generate],
                    suppress_health_check=[HealthCheck.too_slow],
                ),
            )
        finally:
            runner.run(pool.close())
            runner.run(engine.dispose())


@pytest.mark.timeout(120)
async def test_inv_10_no_sequence_of_grants_and_revocations_widens_a_running_run(database_url: str) -> None:
    await asyncio.to_thread(play, database_url)
