"""Monthly partitions of the ledger (DESIGN 5).

A run id is a UUIDv7: its first 48 bits are milliseconds since 1970, so a month is a range of run ids and
dropping a partition is how retention ends a month. A row without a partition is an error, hence they are
made ahead: by every migration, by every worker when it starts, and by the maintenance schedule.
"""

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MONTHS_AHEAD = 3


async def ensure_partitions(connection: AsyncConnection, now: datetime) -> list[str]:
    """Create the partitions of this month and the next three where they are missing; return the new ones.

    Safe to run at any time and in several processes at once.
    """
    created: list[str] = []
    for ahead in range(MONTHS_AHEAD + 1):
        start = _month(now, ahead)
        name = f"agent_run_event_{start:%Y_%m}"
        if await connection.scalar(text("SELECT to_regclass(:name)"), {"name": name}):
            continue
        # The name and the bounds are built from a date alone. The advisory lock lets two processes that
        # start together take turns.
        await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('agent_run_event'))"))
        await connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF agent_run_event"
                f" FOR VALUES FROM ('{_first_id(start)}') TO ('{_first_id(_month(now, ahead + 1))}')"
            )
        )
        created.append(name)
    return created


def _month(now: datetime, ahead: int) -> datetime:
    months = now.year * 12 + now.month - 1 + ahead
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def _first_id(start: datetime) -> UUID:
    """Return the lowest run id that can be made at ``start``."""
    return UUID(int=int(start.timestamp() * 1000) << 80)
