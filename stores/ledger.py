"""Reading the ledger, and the rows that the host itself appends to it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import RowMapping, bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentRunEvent, ArtifactRef, HostEventType, JsonObject, Usage
from stores.columns import UUID as UUID_TYPE
from stores.jsonb import dumps
from stores.tables import agent_run, agent_run_event

_APPEND_HOST = text("""
WITH run AS (
    UPDATE agent_run SET last_sequence = last_sequence + 1, updated_at = now()
    WHERE run_id = :run_id
    RETURNING run_id, workspace_id, last_sequence
)
INSERT INTO agent_run_event (run_id, sequence, workspace_id, attempt, source, type, data)
SELECT run_id, last_sequence, workspace_id, :attempt, 'host', :type, CAST(:data AS jsonb) FROM run
RETURNING sequence
""")

_APPEND_HOST_TO_ALL = text("""
WITH run AS (
    UPDATE agent_run SET last_sequence = last_sequence + 1, updated_at = now()
    WHERE run_id = ANY(:run_ids)
    RETURNING run_id, workspace_id, last_sequence
)
INSERT INTO agent_run_event (run_id, sequence, workspace_id, source, type, data)
SELECT run_id, last_sequence, workspace_id, 'host', :type, CAST(:data AS jsonb) FROM run
RETURNING run_id, sequence
""").bindparams(bindparam("run_ids", type_=ARRAY(UUID_TYPE)))

_TAILS = text("""
SELECT e.* FROM unnest(CAST(:run_ids AS uuid[]), CAST(:after AS bigint[])) AS f(run_id, after),
LATERAL (
    SELECT * FROM agent_run_event
    WHERE run_id = f.run_id AND sequence > f.after
    ORDER BY sequence LIMIT :limit
) AS e
ORDER BY e.run_id, e.sequence
""")


class LedgerStore:
    """The ledger of runs, `agent_run_event`: contiguous from 1 and in commit order (INV-3)."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def append_host(
        self, run_id: UUID, type_: HostEventType, data: JsonObject, *, attempt: int | None = None
    ) -> int:
        """Append a fact of the host and return its sequence.

        Takes the run row's lock, and so the next sequence, until the caller's transaction ends. It checks no
        fence: the caller has done so in the same transaction.
        """
        sequence = await self._connection.scalar(
            _APPEND_HOST,
            {"run_id": run_id, "attempt": attempt, "type": type_.value, "data": dumps(data)},
        )
        return cast("int", sequence)

    async def append_host_to_all(
        self, run_ids: Sequence[UUID], type_: HostEventType, data: JsonObject
    ) -> list[tuple[UUID, int]]:
        """Append the same fact to several runs, whose rows the caller has locked; returns each with its sequence."""
        rows = await self._connection.execute(
            _APPEND_HOST_TO_ALL, {"run_ids": list(run_ids), "type": type_.value, "data": dumps(data)}
        )
        return [(row.run_id, row.sequence) for row in rows]

    async def page(
        self,
        run_id: UUID,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = False,
    ) -> list[AgentRunEvent]:
        """Return at most ``limit`` rows with ``after < sequence < before``."""
        rows = await self.rows(run_id, after=after, before=before, limit=limit, newest_first=newest_first)
        return [read_event(row) for row in rows]

    async def rows(
        self,
        run_id: UUID,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = False,
    ) -> Sequence[RowMapping]:
        """Return what `page` does, raw, for `read_document`."""
        table = agent_run_event
        query = select(table).where(table.c.run_id == run_id, table.c.sequence > after)
        if before is not None:
            query = query.where(table.c.sequence < before)
        order = table.c.sequence.desc() if newest_first else table.c.sequence
        return (await self._connection.execute(query.order_by(order).limit(limit))).mappings().all()

    async def find_source(self, run_id: UUID, attempt: int, source_sequence: int) -> AgentRunEvent | None:
        """Return the row that a runner's number stands for, within one attempt."""
        table = agent_run_event
        rows = await self._connection.execute(
            select(table).where(
                table.c.run_id == run_id,
                table.c.attempt == attempt,
                table.c.source_sequence == source_sequence,
            )
        )
        row = rows.mappings().one_or_none()
        return None if row is None else read_event(row)

    async def tails(self, positions: Mapping[UUID, int], *, limit: int) -> Sequence[RowMapping]:
        """Return what lies behind the position of each run, at most ``limit`` rows a run, in one query.

        Rows come raw, for `read_document`, ordered by run and sequence.
        """
        result = await self._connection.execute(
            _TAILS,
            {"run_ids": list(positions), "after": list(positions.values()), "limit": limit},
        )
        return result.mappings().all()

    async def last_sequence(self, run_id: UUID) -> int:
        """Return the sequence of the run's newest committed row, 0 where there is none."""
        value = await self._connection.scalar(select(agent_run.c.last_sequence).where(agent_run.c.run_id == run_id))
        return value or 0


def read_document(row: RowMapping) -> dict[str, Any]:
    """Return the public form of a ledger row, the fields of `AgentRunEvent`; its time is a `datetime` still.

    No model is built: the journal has checked what it wrote, and live readers get thousands of rows a second.
    """
    return {
        "run_id": str(row["run_id"]),
        "sequence": row["sequence"],
        "type": row["type"],
        "data": row["data"],
        "created_at": row["created_at"],
        "source": row["source"],
        "artifact_refs": row["artifact_refs"] or [],
        "metadata": row["metadata"] or {},
        "source_sequence": row["source_sequence"],
        "attempt": row["attempt"],
        "usage": row["usage"],
    }


def read_event(row: RowMapping) -> AgentRunEvent:
    """Return a ledger row. Its parts were checked when it was written."""
    created_at: datetime = row["created_at"]
    return AgentRunEvent.model_construct(
        run_id=str(row["run_id"]),
        sequence=row["sequence"],
        type=row["type"],
        data=row["data"],
        created_at=created_at,
        source=row["source"],
        source_sequence=row["source_sequence"],
        attempt=row["attempt"],
        usage=None if row["usage"] is None else Usage.model_validate(row["usage"]),
        artifact_refs=[ArtifactRef.model_validate(reference) for reference in row["artifact_refs"] or ()],
        metadata=row["metadata"] or {},
    )
