"""A run that may do everything, with its attempt open, and calls of it that a test narrows.

No gate here: these calls have passed it. What the gate itself does is tested where it is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from host_api.authorization import Authorization
from host_api.definition import Call, MethodDefinition
from host_api.services import HostServices
from host_api.session import Credentials, RunSession
from runhost.protocol import RunStatus
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.cursors import CursorSigner
from stores.driver import driver_pool
from stores.ingest import Ingest
from stores.runs import RunEnd, RunRow, RunStore
from tests.fixtures.grants import everything
from tests.fixtures.host import Host, make_envelope

ELSEWHERE: dict[str, dict[str, Any]] = {
    "conversation": {"conversation_id": "c2"},
    "thread": {"thread_id": "t2"},
    "bot": {"bot_id": "b2"},
    "workspace": {"workspace_id": "w2"},
}
"""Events that are out of the scope of `run`, by what sets them apart."""


@dataclass(frozen=True)
class GrantedRun:
    """One attempt of a run, as the worker that executes it knows it.

    Attributes:
        authorization: What its row holds: one grant of every kind, all operations, all pull APIs, all scopes.
    """

    host: Host
    services: HostServices
    row: RunRow
    attempt: int
    token: str
    authorization: Authorization

    @property
    def run_id(self) -> UUID:
        return self.row.run_id

    @property
    def credentials(self) -> Credentials:
        """What the runner of this attempt shows at the gate."""
        return Credentials(self.token, str(self.run_id), self.authorization.plugin_identity)

    def call(self, **session: Any) -> Call:
        """Return a call that has passed the gate. ``session`` replaces fields of its `RunSession`."""
        known = RunSession(
            run_id=self.run_id,
            attempt=self.attempt,
            workspace_id=self.row.workspace_id,
            runner_id=self.row.runner_id,
            deadline_at=self.row.deadline_at,
            authorization=self.authorization,
        )
        return Call(replace(known, **session), self.services)

    def narrowed(self, **changes: Any) -> Authorization:
        """Return the authorization with some of its fields replaced, for `call(authorization=...)`."""
        return self.authorization.model_copy(update=changes)

    async def ask(
        self, method: MethodDefinition, /, *, authorization: Authorization | None = None, **params: Any
    ) -> Any:
        """Check the requirement and run the method, as the gate does."""
        call = self.call(authorization=authorization or self.authorization)
        read = method.wire.params.model_validate(params)
        method.requirement.check(call.session.authorization, read)
        return method.wire.returns.model_validate(await method.run(call, read))

    async def next_attempt(self) -> "GrantedRun":
        """Move the fence: open the next attempt of the same run, as a worker does after a loss."""
        opened = await _open(self.host, self.run_id, self.attempt + 1)
        return replace(self, row=opened.run, attempt=opened.attempt, token=opened.token)

    async def end(self) -> None:
        """End the run, and with it its attempt."""
        async with self.host.engine.begin() as connection:
            row = await RunStore(connection).load(self.run_id, lock=True)
            await RunStore(connection).settle(row, RunEnd(RunStatus.COMPLETED))


NewRun = Callable[..., Awaitable[GrantedRun]]


@pytest.fixture
async def services(host: Host, tmp_path: Path) -> AsyncIterator[HostServices]:
    """What the host API works with, over the database of this test; file artifacts lie in ``tmp_path/files``."""
    file_root = tmp_path / "files"
    file_root.mkdir()
    async with driver_pool(host.database_url, size=5, application_name="tests") as pool:
        yield make_services(host, pool, file_root=file_root)


def make_services(host: Host, pool: asyncpg.Pool, **more: Any) -> HostServices:
    """Return services over a host's database; ``more`` are further fields."""
    known: dict[str, Any] = {
        "engine": host.engine,
        "pool": pool,
        "cursors": CursorSigner(b"secret of the tests"),
        "host_version": "0.0.1",
    }
    return HostServices(**known | more)


@pytest.fixture
def new_run(host: Host, services: HostServices) -> NewRun:
    """Factory of runs with an open attempt; keywords are fields of the event, `workspace_id` among them."""

    async def make(**event: Any) -> GrantedRun:
        known: dict[str, Any] = {"subject": {"subject_type": "message", "subject_id": "m1"}}
        envelope = make_envelope(**known | event)
        workspace = Host(host.engine, host.database_url, envelope.workspace_id or host.workspace_id)
        await workspace.put_agent(bind=False)
        async with host.engine.begin() as connection:
            accepted = await Ingest(connection, workspace.workspace_id).accept_run(envelope, "a1", {})
            assert accepted.run_id is not None
            row = await RunStore(connection).load(accepted.run_id)
            authorization = everything(row, envelope)
            await RunStore(connection).freeze(
                row.run_id, authorization=authorization.model_dump(mode="json"), context={}, deadline_at=None
            )
        opened = await _open(workspace, row.run_id, 1)
        return GrantedRun(workspace, services, opened.run, opened.attempt, opened.token, authorization)

    return make


@pytest.fixture
async def run(new_run: NewRun) -> GrantedRun:
    """A run for a message in conversation ``c1`` of bot ``b1``, without a thread, in workspace ``w1``."""
    return await new_run()


async def _open(host: Host, run_id: UUID, execution: int) -> OpenAttempt:
    async with host.engine.begin() as connection:
        opened = await AttemptStore(connection).open(
            run_id, ActivityExecution("temporal-run", "1", execution, "test-worker")
        )
    assert isinstance(opened, OpenAttempt)
    return opened
