"""A runner elsewhere: what it needs to call the host API of its run over HTTP."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx

from runhost.protocol import JsonObject, RunStatus
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.runs import RunEnd, RunRow, RunStore
from tests.api.conftest import Host
from tests.fixtures.grants import everything


@dataclass
class RunAccess:
    """The current attempt of a run that may do everything."""

    host: Host
    row: RunRow
    token: str
    client: httpx.AsyncClient

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Runhost-Run-Id": str(self.row.run_id),
            "Runhost-Plugin-Identity": "runhost/scripted",
        }

    async def call(self, method: str, params: JsonObject | None = None, **headers: str) -> httpx.Response:
        """Call a method; ``headers`` replace those of the run, with underscores for dashes."""
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(f"/v1/host/{method}", json=params or {}, headers=self.headers | own)

    async def end(self) -> None:
        async with self.host.engine.begin() as connection:
            row = await RunStore(connection).load(self.row.run_id, lock=True)
            await RunStore(connection).settle(row, RunEnd(RunStatus.COMPLETED))


async def open_access(
    host: Host, client: httpx.AsyncClient | None = None, resources: JsonObject | None = None, **run: Any
) -> RunAccess:
    """Create a run that may do everything and open an attempt of it; ``resources`` replace what it is granted."""
    run_id = UUID((await host.run(**run))["run_id"])
    async with host.engine.begin() as connection:
        runs = RunStore(connection)
        row = await runs.load(run_id)
        authorization = everything(row, row.envelope).model_dump(mode="json")
        authorization["resources"] |= resources or {}
        await runs.freeze(run_id, authorization=authorization, context={}, deadline_at=None)
        opened = await AttemptStore(connection).open(run_id, ActivityExecution("temporal-run", "1", 1, "test-worker"))
    assert isinstance(opened, OpenAttempt)
    return RunAccess(host, opened.run, opened.token, client or await host.bearer(None))
