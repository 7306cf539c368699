"""Writes the ledger of a run as a worker does, without one."""

from typing import Any
from uuid import UUID, uuid4

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from runhost.protocol import RunStatus
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.journal import AttemptEnd, Batch, JournalStore, LedgerRow, Projections
from stores.jsonb import dumps
from stores.notifications import LEDGER_CHANNEL, notify
from stores.runs import RunEnd, RunStore


class LedgerWriter:
    """One attempt of a run. Every write is committed and, unless told otherwise, announced at once."""

    def __init__(self, engine: AsyncEngine, pool: asyncpg.Pool, run_id: str, *, announces: bool = True) -> None:
        self.run_id = UUID(run_id)
        self._engine = engine
        self._journal = JournalStore(pool)
        self._announces = announces
        self._attempt = 0
        self._commits = 0
        self._number = 0

    async def open(self) -> "LedgerWriter":
        """Open the attempt; writes ledger row 1."""
        execution = ActivityExecution(str(uuid4()), "1", 1, "test")
        async with self._engine.begin() as connection:
            opened = await AttemptStore(connection).open(self.run_id, execution)
        assert isinstance(opened, OpenAttempt)
        self._attempt = opened.attempt
        await self._announce(opened.run.last_sequence)
        return self

    async def deltas(self, count: int, text: str = "word ") -> int:
        """Commit that many deltas; returns the last sequence."""
        return await self.rows([("message.delta", {"chunk": {"content": text}}) for _ in range(count)])

    async def rows(
        self,
        rows: list[tuple[str, dict[str, Any]]],
        *,
        projections: Projections | None = None,
        end: AttemptEnd | None = None,
    ) -> int:
        """Commit rows, each a type and its data; returns the last sequence."""
        batch = Batch(self.run_id, self._attempt, self._commits, projections=projections or Projections(), end=end)
        for type_, data in rows:
            self._number += 1
            batch.rows.append(LedgerRow(type_, dumps(data), source_sequence=self._number))
        base = await self._journal.commit(batch)
        assert base is not None
        self._commits += 1
        await self._announce(base + len(rows))
        return base + len(rows)

    async def complete(self) -> int:
        """End the attempt and the run; returns the run's last sequence."""
        await self.rows([("run.completed", {"finish_reason": "stop"})], end=AttemptEnd("completed"))
        return await self.settle(RunStatus.COMPLETED)

    async def settle(self, status: RunStatus) -> int:
        """Write the terminal status."""
        async with self._engine.begin() as connection:
            runs = RunStore(connection)
            last = await runs.settle(await runs.load(self.run_id, lock=True), RunEnd(status))
        await self._announce(last)
        return last

    async def _announce(self, last: int) -> None:
        if self._announces:
            await notify(self._engine, LEDGER_CHANNEL, f"{self.run_id}:{last}")
