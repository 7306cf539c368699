"""Who reads a workspace's registries for a snapshot, and who takes something out of them.

A run that is prepared reads what exists and commits its snapshot a moment later. Whoever deletes something in
between looks for the runs that hold it and does not see this one yet, so that it would keep the grant. The
lock closes that gap: a preparation that reads holds it shared until it has committed, and a revocation from
all runs takes it alone before it looks. So each preparation either has committed and is found, or reads after
the deletion has committed and finds nothing (D-15).

It costs a preparation one short statement and no write, where row locks on 500 grants would write 500 rows.
"""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection


async def hold_registries(connection: AsyncConnection, workspace_id: str) -> None:
    """Keep revocations from all runs out until the transaction ends; others may hold it too."""
    await connection.execute(select(func.pg_advisory_xact_lock_shared(_key(workspace_id))))


async def seize_registries(connection: AsyncConnection, workspace_id: str) -> None:
    """Wait for the preparations that have read the registries, and keep others out until the transaction ends.

    A preparation waits here while it holds the lock of its own run, whose snapshot is empty still. Nobody who
    has seized waits for such a run, so the two never wait for each other.
    """
    await connection.execute(select(func.pg_advisory_xact_lock(_key(workspace_id))))


def _key(workspace_id: str) -> object:
    return func.hashtextextended(f"registries {workspace_id}", 0)
