"""The buffer of an attempt's commits: when they happen, and that each happens exactly once (DESIGN 7)."""

import asyncio

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from activities.patience import until_available
from runhost.protocol import JsonObject
from stores.attempts import OpenAttempt
from stores.errors import ArtifactConflict, RunTerminal, StaleAttempt
from stores.journal import Batch, JournalStore, LedgerRow
from stores.notifications import LedgerAnnouncer
from stores.runs import RunStore

# Deltas wait this long for company; everything else is committed at once.
FLUSH_AFTER_SECONDS = 0.02
FLUSH_ROWS = 64
FLUSH_BYTES = 64 * 1024


class CommitBuffer:
    """Collects rows into the batch that is committed next. One writer; commits never overlap.

    `commit` and `commit_when_due` raise:
        StaleAttempt: A newer attempt holds the fence; nothing was written (INV-5).
        RunTerminal: The run or the attempt has ended; nothing was written (INV-6).
        ArtifactConflict: An artifact id was taken in the meantime; nothing was written.
    """

    def __init__(self, engine: AsyncEngine, announcer: LedgerAnnouncer, opened: OpenAttempt) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._announcer = announcer
        self.batch = Batch(opened.run.run_id, opened.attempt, commit=0)
        self._bytes = 0
        self._committing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._background: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    @property
    def next_position(self) -> int:
        """The place in the batch of the row that is appended next, from 1."""
        return len(self.batch.rows) + 1

    def append(self, row: LedgerRow) -> None:
        """Put a row into the batch."""
        self.batch.rows.append(row)
        self._bytes += len(row.data)

    def cause(self, kind: str, entries: list[JsonObject]) -> None:
        """Put projections of the next row into the batch; ``kind`` is a list of `Projections`."""
        rows: list[JsonObject] = getattr(self.batch.projections, kind)
        rows.extend({**entry, "position": self.next_position} for entry in entries)

    async def commit_when_due(self) -> None:
        """Commit a full batch now, and any other within 20 ms."""
        if len(self.batch.rows) >= FLUSH_ROWS or self._bytes >= FLUSH_BYTES:
            await self.commit()
            return
        self._raise_failure()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER_SECONDS, self._commit_soon)

    async def commit(self) -> None:
        """Commit what is in the batch; returns when it is durable."""
        async with self._committing:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._raise_failure()
            batch = self.batch
            if not batch.rows:
                return
            self.batch = Batch(batch.run_id, batch.attempt, batch.commit + 1)
            self._bytes = 0
            self._announcer.grown(batch.run_id, await self._write(batch))

    def _commit_soon(self) -> None:
        self._timer = None
        self._background = asyncio.create_task(self._commit_in_background())

    async def _commit_in_background(self) -> None:
        try:
            await self.commit()
        except Exception as error:  # noqa: BLE001 - raised again by the writer's next call
            self._failure = error

    def _raise_failure(self) -> None:
        """Tell the writer of a commit that failed behind its back."""
        if self._failure is not None:
            raise self._failure

    async def _write(self, batch: Batch) -> int:
        """Write a batch exactly once, over restarts of the database, and return the run's last sequence."""

        async def attempt(tries: int) -> int:
            async with self._engine.connect() as connection:
                base = await JournalStore(connection).commit(batch)
                if base is None:
                    return await _explain(connection, batch, was_tried=tries > 0)
                return base + len(batch.rows)

        try:
            return await until_available(attempt)
        except asyncpg.UniqueViolationError:
            raise ArtifactConflict("Another run took the artifact id in the meantime.") from None


async def _explain(connection: AsyncConnection, batch: Batch, *, was_tried: bool) -> int:
    """Say why a commit did not pass: the fence has moved, it was made already, or the run has ended."""
    run = await RunStore(connection).load(batch.run_id)
    if run.current_attempt != batch.attempt:
        raise StaleAttempt(f"Attempt {batch.attempt} was replaced by attempt {run.current_attempt}.")
    if was_tried and run.attempt_commits == batch.commit + 1:
        # The answer to an earlier try was lost with its connection. Its own rows are the attempt's last.
        return run.last_sequence
    raise RunTerminal(f"The run or its attempt has ended: {run.attempt_outcome or run.status}.")
