"""What the maintenance schedule does: start what was never started, make room ahead of time (DESIGN 9)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio import activity

from activities.boundary import guarded, uninterrupted
from runhost.protocol import AgentRun
from stores.partitions import ensure_partitions
from stores.runs import RunStore

# A run that is younger is being started by whoever accepted it.
NEVER_STARTED_AFTER = timedelta(seconds=5)
# What is left after that many waits for the next firing.
STARTS_PER_FIRING = 500

_log = structlog.get_logger(__name__)


class MaintenanceActivities:
    """Safe to run twice, and twice at once.

    Args:
        engine: The database.
        start: Starts the workflow of a run; does nothing where it was started before.
    """

    def __init__(self, engine: AsyncEngine, start: Callable[[AgentRun], Awaitable[None]]) -> None:
        self._engine = engine
        self._start = start

    @activity.defn(name="maintenance.start_never_started")
    @guarded
    async def start_never_started(self) -> int:
        """Start accepted runs that no workflow has taken up, the oldest first; return how many."""
        older_than = datetime.now(UTC) - NEVER_STARTED_AFTER
        async with self._engine.connect() as connection:
            runs = await RunStore(connection).never_started(older_than=older_than, limit=STARTS_PER_FIRING)
        for run in runs:
            await self._start(run)
            _log.info("run.started_late", run_id=run.run_id)
        return len(runs)

    @activity.defn(name="maintenance.ensure_partitions")
    @uninterrupted
    @guarded
    async def ensure_partitions(self) -> None:
        """Create the ledger's partitions of the coming months."""
        async with self._engine.begin() as connection:
            created = await ensure_partitions(connection, datetime.now(UTC))
        for name in created:
            _log.info("partition.created", name=name)
