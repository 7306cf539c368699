"""The buffer of an attempt's commits: when they happen, and that each happens exactly once (DESIGN 7)."""

import asyncio

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from activities.patience import until_available
from runhost.protocol import JsonObject
from stores.attempts import OpenAttempt
from stores.errors import ArtifactConflict, RunTerminal, StaleAttempt
from stores.journal import Batch, JournalStore, LedgerRow
from stores.notifications import LedgerAnnouncer
from stores.runs import RunStore
from stores.tables import artifact

# Deltas wait this long for company; everything else is committed at once.
FLUSH_AFTER_SECONDS = 0.02
FLUSH_ROWS = 64
FLUSH_BYTES = 64 * 1024
# While one batch is on its way to the database the next one fills up. The writer waits when it has this much,
# which is how a runner that is faster than the database is throttled.
MAX_ROWS = 4 * FLUSH_ROWS
MAX_BYTES = 4 * FLUSH_BYTES
YIELD_ROWS = 32


class CommitBuffer:
    """Collects rows into the batch that is committed next. One writer; commits never overlap.

    `commit` and `commit_when_due` raise:
        StaleAttempt: A newer attempt holds the fence; nothing was written (INV-5).
        RunTerminal: The run or the attempt has ended; nothing was written (INV-6).
        ArtifactConflict: An artifact id was taken in the meantime; nothing was written.
    """

    def __init__(
        self, engine: AsyncEngine, store: JournalStore, announcer: LedgerAnnouncer, opened: OpenAttempt
    ) -> None:
        self._engine = engine
        self._store = store
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
        """Have a full batch committed now and any other within 20 ms; wait only where the next one is full too."""
        self._raise_failure()
        if len(self.batch.rows) >= MAX_ROWS or self._bytes >= MAX_BYTES:
            await self.commit()
        elif self._is_full:
            self._commit_in_background()
            if len(self.batch.rows) % YIELD_ROWS == 0:
                # A burst never waits for anything, so the commit would not get its turn until the end of it.
                await asyncio.sleep(0)
        else:
            self._commit_later()

    @property
    def _is_full(self) -> bool:
        return len(self.batch.rows) >= FLUSH_ROWS or self._bytes >= FLUSH_BYTES

    async def commit(self) -> None:
        """Commit what is in the batch; returns when it is durable."""
        async with self._committing:
            self._stop_timer()
            self._raise_failure()
            batch = self.batch
            if not batch.rows:
                return
            self.batch = Batch(batch.run_id, batch.attempt, batch.commit + 1)
            self._bytes = 0
            try:
                last = await self._write(batch)
            except ArtifactConflict:
                # Nothing was written. What makes an artifact is committed at once, so it is the batch's last row;
                # the deltas before it still stand, and so does the number of the commit.
                self.batch = Batch(batch.run_id, batch.attempt, batch.commit, batch.rows[:-1])
                raise
            self._announcer.grown(batch.run_id, last)

    def _raise_failure(self) -> None:
        """Tell the writer, once, of a commit that failed behind its back."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _commit_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER_SECONDS, self._commit_in_background)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _commit_in_background(self) -> None:
        self._stop_timer()
        if self._background is None or self._background.done():
            self._background = asyncio.create_task(self._commit_quietly())

    async def _commit_quietly(self) -> None:
        """Commit; a failure is told to the writer, whose next call raises it."""
        try:
            await self.commit()
            while self._is_full:
                await self.commit()
        except Exception as error:  # noqa: BLE001 - raised again by the writer's next call
            self._failure = error
            return
        if self.batch.rows:
            # They came while the commit was under way, and their timer may have run out meanwhile.
            self._commit_later()

    async def _write(self, batch: Batch) -> int:
        """Write a batch exactly once, over restarts of the database, and return the run's last sequence."""

        async def attempt(tries: int) -> int:
            base = await self._store.commit(batch)
            return await self._explain(batch, was_tried=tries > 0) if base is None else base + len(batch.rows)

        try:
            return await until_available(attempt)
        except asyncpg.UniqueViolationError as error:
            if error.as_dict().get("table_name") != artifact.name:
                raise
            raise ArtifactConflict("Another run took the artifact id in the meantime.") from None

    async def _explain(self, batch: Batch, *, was_tried: bool) -> int:
        """Say why a commit did not pass: the fence has moved, it was made already, or the run has ended."""
        async with self._engine.connect() as connection:
            run = await RunStore(connection).load(batch.run_id)
        if run.current_attempt != batch.attempt:
            raise StaleAttempt(f"Attempt {batch.attempt} was replaced by attempt {run.current_attempt}.")
        if was_tried and run.attempt_commits == batch.commit + 1:
            # The answer to an earlier try was lost with its connection. Its own rows are the attempt's last.
            return run.last_sequence
        raise RunTerminal(f"The run or its attempt has ended: {run.attempt_outcome or run.status}.")
