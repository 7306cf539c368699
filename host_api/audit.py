"""Who touched what: one row for every call, written behind the calls (PROTOCOL 15, H-A9)."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from uuid import UUID

import asyncpg
import structlog

from stores.availability import is_unavailable
from stores.escaping import escape

FLUSH_SECONDS = 0.05
RETRY_SECONDS = 1.0
MAX_WAITING = 10_000
"""Rows that may wait for the database; beyond it calls wait too, so that no row is lost."""

MAX_TEXT = 500

# From arrays in one statement: for a handful of rows COPY takes three times as long.
_INSERT = """
INSERT INTO access_audit (workspace_id, run_id, attempt, runner_id, action, resource, scope, result, duration_us,
    created_at)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::timestamptz[])
"""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """One call.

    Attributes:
        workspace_id: Whose run it was; empty where the credentials belong to nobody.
        result: `ok`, or the code of the refusal.
        duration_us: Microseconds from its arrival to its answer.
    """

    workspace_id: str
    run_id: UUID | None
    attempt: int | None
    runner_id: str | None
    action: str
    resource: str | None
    scope: str | None
    result: str
    duration_us: int


class AccessAudit:
    """Collects accesses and writes them into `access_audit`, at most 50 ms later; enter it as a context.

    A process that is killed loses what it had not written yet, at most 50 ms of rows; leaving the context
    writes everything.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._rows: list[tuple[object, ...]] = []
        self._batch_rows = MAX_WAITING
        self._room = asyncio.Event()
        self._room.set()
        self._urgent = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.flush()

    async def note(self, access: Access) -> None:
        """Add a row; returns at once, except where the database has been away for thousands of calls."""
        await self._room.wait()
        self._rows.append(
            (
                access.workspace_id,
                access.run_id,
                access.attempt,
                access.runner_id,
                access.action,
                _text(access.resource),
                _text(access.scope),
                access.result,
                access.duration_us,
                datetime.now(UTC),
            )
        )
        if len(self._rows) >= MAX_WAITING:
            self._room.clear()
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_soon(), name="access-audit")

    async def flush(self) -> None:
        """Write what waits now. Rows that the database does not take stay, and the log says how many."""
        self._urgent.set()
        if self._flushing is not None:
            # Never cancelled: a statement that is cut off may have been committed, and would be written twice.
            await asyncio.wait([self._flushing])
        self._urgent.clear()
        if self._rows:
            _log.error("access_audit.not_written", rows=len(self._rows))

    async def _flush_soon(self) -> None:
        await self._pause(FLUSH_SECONDS)
        while self._rows:
            try:
                await self._write()
            except Exception as error:  # noqa: BLE001 - what this task does not write keeps all calls waiting in the end
                if not is_unavailable(error):
                    self._leave_out(error)
                    continue
                _log.warning("access_audit.waiting", rows=len(self._rows), error=type(error).__name__)
                if self._urgent.is_set():
                    return
                await self._pause(RETRY_SECONDS)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._urgent.wait()

    def _leave_out(self, error: Exception) -> None:
        """After a refusal go on with one row at a time, and leave out the one that is refused alone."""
        if self._batch_rows > 1:
            self._batch_rows = 1
            return
        del self._rows[0]
        _log.error("access_audit.refused", error=type(error).__name__)

    async def _write(self) -> None:
        rows, self._rows = self._rows[: self._batch_rows], self._rows[self._batch_rows :]
        try:
            await self._pool.execute(_INSERT, *zip(*rows, strict=True))
        except BaseException:
            self._rows = rows + self._rows
            raise
        finally:
            if len(self._rows) < MAX_WAITING:
                self._room.set()
        if not self._rows:
            self._batch_rows = MAX_WAITING


def _text(value: str | None) -> str | None:
    return None if value is None else escape(value[:MAX_TEXT])
