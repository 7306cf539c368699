"""Runs that hold grants, for tests of what is taken back."""

from typing import Any
from uuid import UUID

from sqlalchemy import select

from runhost.protocol import AgentResources
from stores.runs import RunStore
from stores.tables import agent_run
from tests.fixtures.host import Host


async def run_with(host: Host, **resources: list[dict[str, Any]]) -> UUID:
    """Create an open run whose snapshot lists ``resources``, by their names in `AgentResources`."""
    run_id = UUID((await host.new_run()).run_id)
    listed = AgentResources.model_validate(resources).model_dump(mode="json")
    async with host.engine.begin() as connection:
        await RunStore(connection).freeze(run_id, authorization={"resources": listed}, context={}, deadline_at=None)
    return run_id


async def taken_from(host: Host, run_id: UUID) -> list[tuple[str, str]]:
    """Return kind and id of what was taken back from a run."""
    async with host.engine.connect() as connection:
        revocations = await connection.scalar(select(agent_run.c.revocations).where(agent_run.c.run_id == run_id))
    return [(entry["kind"], entry["id"]) for entry in revocations or []]
