"""Runs: one row each, from the accepted event to the settled end (DESIGN 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import RowMapping, bindparam, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import OPEN, AgentEventEnvelope, AgentRun, HostEventType, JsonObject, RunStatus, Usage
from stores.bindings import Route
from stores.errors import RunNotFound, RunTerminal
from stores.escaping import escape
from stores.jsonb import dumps
from stores.ledger import LedgerStore
from stores.model_usage import RUN_COUNTED, run_usage
from stores.tables import agent_run

_OPEN = tuple(status.value for status in OPEN)
# The big columns: what the runner is given and what it may reach. Lists and readers leave them alone.
_PRIVATE = {"envelope", "authorization", "revocations", "context", "attempt_commits"}
_READ = [column for column in agent_run.c if column.name not in _PRIVATE]

# On the path of every run, so built once.
_LOAD = select(agent_run).where(agent_run.c.run_id == bindparam("run_id"))
_LOAD_AND_LOCK = _LOAD.with_for_update()
_SETTLE = text("""
WITH run AS (
    UPDATE agent_run
    SET status = :status, status_code = :code, status_reason = :reason, last_sequence = last_sequence + 1,
        -- The fence closes with the run, whether or not its attempt said how it ended.
        attempt_outcome = COALESCE(attempt_outcome, :status), finished_at = now(), updated_at = now()
    WHERE run_id = :run_id AND status = ANY(:open)
    RETURNING run_id, workspace_id, current_attempt, last_sequence
)
INSERT INTO agent_run_event (run_id, sequence, workspace_id, attempt, source, type, data)
SELECT run_id, last_sequence, workspace_id, NULLIF(current_attempt, 0), 'host', :type, CAST(:data AS jsonb) FROM run
RETURNING sequence
""")


@dataclass(frozen=True)
class RunRow:
    """What the host's own activities know of a run."""

    run_id: UUID
    workspace_id: str
    event_id: str
    event_type: str
    agent_id: str
    agent_version: int
    binding_id: str | None
    runner_id: str
    bot_id: str | None
    conversation_id: str | None
    thread_id: str | None
    status: RunStatus
    status_code: str | None
    current_attempt: int
    attempt_commits: int
    attempt_outcome: str | None
    last_sequence: int
    envelope_json: JsonObject
    authorization: JsonObject | None
    context: JsonObject | None
    usage: Usage | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None

    @property
    def envelope(self) -> AgentEventEnvelope:
        """The event with its content. Read anew at each use: few of those who load a run need it."""
        return AgentEventEnvelope.model_validate(self.envelope_json)


@dataclass(frozen=True)
class RunFilter:
    """Which runs a list shows; what is None does not narrow it."""

    status: RunStatus | None = None
    agent_id: str | None = None
    runner_id: str | None = None
    conversation_id: str | None = None
    bot_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True)
class RunEnd:
    """How a run ended. ``data`` is what the last ledger row says besides status, code and reason."""

    status: RunStatus
    code: str | None = None
    reason: str | None = None
    data: JsonObject | None = None


class RunStore:
    """Runs. Methods that answer to a caller take its workspace; activities hold a run id of their own."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._ledger = LedgerStore(connection)

    async def create(
        self,
        run_id: UUID,
        workspace_id: str,
        envelope: AgentEventEnvelope,
        route: Route,
        metadata: JsonObject,
    ) -> AgentRun:
        """Write a run in status ``created``. Its event must be in the log, in the same transaction."""
        rows = await self._connection.execute(
            insert(agent_run)
            .values(
                run_id=run_id,
                workspace_id=workspace_id,
                event_id=envelope.event_id,
                event_type=envelope.event_type,
                agent_id=route.agent_id,
                agent_version=route.agent_version,
                binding_id=route.binding_id,
                runner_id=route.config.runner_id,
                bot_id=envelope.bot_id,
                conversation_id=envelope.conversation_id,
                thread_id=envelope.thread_id,
                status=RunStatus.CREATED.value,
                envelope=envelope.model_dump(mode="json", exclude_none=True),
                metadata=metadata,
            )
            .returning(*_READ)
        )
        return _read(rows.mappings().one())

    async def get(self, workspace_id: str, run_id: UUID) -> AgentRun:
        """Return a run.

        Raises:
            RunNotFound: There is none in this workspace.
        """
        rows = await self._connection.execute(
            select(*_READ, RUN_COUNTED).where(agent_run.c.run_id == run_id, agent_run.c.workspace_id == workspace_id)
        )
        row = rows.mappings().one_or_none()
        if row is None:
            raise RunNotFound(f"There is no run {str(run_id)!r} in this workspace.")
        return _read(row)

    async def list(
        self, workspace_id: str, narrowed: RunFilter, *, before: UUID | None, limit: int
    ) -> Sequence[AgentRun]:
        """Return runs older than ``before``, newest first. Run ids are in order of time."""
        columns = agent_run.c
        query = select(*_READ, RUN_COUNTED).where(columns.workspace_id == workspace_id)
        for name in ("status", "agent_id", "runner_id", "conversation_id", "bot_id"):
            value = getattr(narrowed, name)
            if value is not None:
                query = query.where(columns[name] == value)
        if narrowed.created_after is not None:
            query = query.where(columns.created_at >= narrowed.created_after)
        if narrowed.created_before is not None:
            query = query.where(columns.created_at < narrowed.created_before)
        if before is not None:
            query = query.where(columns.run_id < before)
        rows = await self._connection.execute(query.order_by(columns.run_id.desc()).limit(limit))
        return [_read(row) for row in rows.mappings()]

    async def load(self, run_id: UUID, *, lock: bool = False) -> RunRow:
        """Return everything about a run; with ``lock``, hold its row until the transaction ends.

        Raises:
            RunNotFound: There is none.
        """
        query = _LOAD_AND_LOCK if lock else _LOAD
        row = (await self._connection.execute(query, {"run_id": run_id})).mappings().one_or_none()
        if row is None:
            raise RunNotFound(f"There is no run {str(run_id)!r}.")
        return _load(row)

    async def freeze(
        self, run_id: UUID, *, authorization: JsonObject, context: JsonObject, deadline_at: datetime | None
    ) -> bool:
        """Store the snapshot, the context and the deadline, once (D-15); False where they stand already."""
        frozen = await self._connection.execute(
            update(agent_run)
            .where(agent_run.c.run_id == run_id, agent_run.c.authorization.is_(None))
            .values(authorization=authorization, context=context, deadline_at=deadline_at, updated_at=func.now())
        )
        return frozen.rowcount == 1

    async def request_cancel(self, run_id: UUID, reason: str | None) -> int | None:
        """Note that a cancel was asked for, once, and only while the run is open.

        Returns the sequence of the ledger row that says so, or None where there was nothing to do.
        """
        noted = await self._connection.execute(
            update(agent_run)
            .where(
                agent_run.c.run_id == run_id,
                agent_run.c.status.in_(_OPEN),
                agent_run.c.cancel_requested_at.is_(None),
            )
            .values(cancel_requested_at=func.now(), cancel_reason=reason, updated_at=func.now())
        )
        if noted.rowcount == 0:
            return None
        return await self._ledger.append_host(
            run_id, HostEventType.CANCEL_REQUESTED, {"reason": reason} if reason else {}
        )

    async def settle(self, run: RunRow, end: RunEnd) -> int:
        """Write the terminal status and the ledger's last row, whose sequence is returned.

        Raises:
            RunTerminal: The run has ended before (INV-6).
        """
        data: JsonObject = {"status": end.status.value, "code": end.code, "reason": end.reason}
        sequence = await self._connection.scalar(
            _SETTLE,
            {
                "run_id": run.run_id,
                "status": end.status.value,
                "code": end.code,
                "reason": end.reason and escape(end.reason),
                "open": list(_OPEN),
                "type": HostEventType.RUN_ENDED.value,
                "data": dumps({key: value for key, value in data.items() if value is not None} | (end.data or {})),
            },
        )
        if sequence is None:
            raise RunTerminal(f"Run {str(run.run_id)!r} has ended as {run.status}.")
        return sequence

    async def never_started(self, *, older_than: datetime, limit: int) -> Sequence[AgentRun]:
        """Return runs of all workspaces that are still ``created``, the oldest first."""
        rows = await self._connection.execute(
            select(*_READ)
            .where(agent_run.c.status == RunStatus.CREATED.value, agent_run.c.created_at < older_than)
            .order_by(agent_run.c.created_at)
            .limit(limit)
        )
        return [_read(row) for row in rows.mappings()]

    async def cancel_requested_among(self, run_ids: Sequence[UUID]) -> Sequence[UUID]:
        """Return those of ``run_ids`` for which a cancel was asked."""
        rows = await self._connection.scalars(
            select(agent_run.c.run_id).where(
                agent_run.c.run_id.in_(run_ids), agent_run.c.cancel_requested_at.is_not(None)
            )
        )
        return rows.all()


def _read(row: RowMapping) -> AgentRun:
    return AgentRun(
        run_id=str(row["run_id"]),
        workspace_id=row["workspace_id"],
        event_id=row["event_id"],
        agent_id=row["agent_id"],
        agent_version=row["agent_version"],
        binding_id=row["binding_id"],
        runner_id=row["runner_id"],
        bot_id=row["bot_id"],
        conversation_id=row["conversation_id"],
        thread_id=row["thread_id"],
        status=row["status"],
        status_code=row["status_code"],
        status_reason=row["status_reason"],
        current_attempt=row["current_attempt"],
        last_sequence=row["last_sequence"],
        # A run that was created just now has no calls yet, and is read without them.
        usage=run_usage(row["usage"], row.get("counted")),
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        updated_at=row["updated_at"],
        deadline_at=row["deadline_at"],
        cancel_requested_at=row["cancel_requested_at"],
        metadata=row["metadata"],
    )


def _load(row: RowMapping) -> RunRow:
    return RunRow(
        run_id=row["run_id"],
        workspace_id=row["workspace_id"],
        event_id=row["event_id"],
        event_type=row["event_type"],
        agent_id=row["agent_id"],
        agent_version=row["agent_version"],
        binding_id=row["binding_id"],
        runner_id=row["runner_id"],
        bot_id=row["bot_id"],
        conversation_id=row["conversation_id"],
        thread_id=row["thread_id"],
        status=RunStatus(row["status"]),
        status_code=row["status_code"],
        current_attempt=row["current_attempt"],
        attempt_commits=row["attempt_commits"],
        attempt_outcome=row["attempt_outcome"],
        last_sequence=row["last_sequence"],
        envelope_json=row["envelope"],
        authorization=row["authorization"],
        context=row["context"],
        usage=None if row["usage"] is None else Usage.model_validate(row["usage"]),
        deadline_at=row["deadline_at"],
        cancel_requested_at=row["cancel_requested_at"],
    )
