"""Attempts: one start of a runner within a run, and the fence that goes with it (DESIGN 4)."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from sqlalchemy import RowMapping, bindparam, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentRunAttempt, HostEventType, RunFailureCode, RunStatus
from stores.journal import AttemptEnd
from stores.jsonb import dumps
from stores.ledger import LedgerStore
from stores.model_usage import ATTEMPT_COUNTED, attempt_usage
from stores.runs import RunRow, RunStore
from stores.tables import agent_run_attempt

# On the path of every run, so built once.
_LATEST = (
    select(agent_run_attempt)
    .where(agent_run_attempt.c.run_id == bindparam("run_id"))
    .order_by(agent_run_attempt.c.attempt.desc())
    .limit(1)
)
_OPEN = text("""
WITH run AS (
    UPDATE agent_run
    SET current_attempt = :attempt, attempt_commits = 0, attempt_outcome = NULL, status = 'running',
        last_sequence = last_sequence + 1, started_at = COALESCE(started_at, now()), updated_at = now()
    WHERE run_id = :run_id
    RETURNING run_id, workspace_id, last_sequence
), attempt AS (
    INSERT INTO agent_run_attempt (run_id, attempt, workspace_id, token_hash, temporal_run_id, activity_id,
        activity_attempt, worker_identity)
    SELECT run_id, :attempt, workspace_id, :token_hash, :temporal_run_id, :activity_id, :activity_attempt,
        :worker_identity
    FROM run
)
INSERT INTO agent_run_event (run_id, sequence, workspace_id, attempt, source, type, data)
SELECT run_id, last_sequence, workspace_id, :attempt, 'host', :type, CAST(:data AS jsonb) FROM run
RETURNING sequence
""")


@dataclass(frozen=True)
class ActivityExecution:
    """Which execution of `runner.invoke` opens an attempt; the four are its key (DESIGN 4)."""

    temporal_run_id: str
    activity_id: str
    activity_attempt: int
    worker_identity: str


@dataclass(frozen=True)
class OpenAttempt:
    """An attempt that may write. ``token`` is the run token; only its hash is stored."""

    run: RunRow
    attempt: int
    token: str


class AttemptStore:
    """Attempts of runs."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._ledger = LedgerStore(connection)

    async def open(self, run_id: UUID, execution: ActivityExecution) -> OpenAttempt | AttemptEnd:
        """Open the run's next attempt and move the fence to it, in the caller's transaction.

        Answers with an `AttemptEnd` instead where no attempt may start: the run or its attempt has ended, a
        cancel was asked for, the deadline has passed, or a lost attempt had said something complete, which
        must not be said twice (DESIGN 9). Repeating the call for the same execution opens one attempt.
        """
        run = await RunStore(self._connection).load(run_id, lock=True)
        previous = await self._latest(run_id)
        if previous is not None and _is_of(previous, execution):
            return await self._reopen(run)
        refusal = _refusal(run, previous, execution, datetime.now(UTC))
        if refusal is not None:
            return refusal
        if previous is not None and previous["ended_at"] is None:
            await self._close_lost(run, previous)
        return await self._insert(run, execution)

    async def list(self, workspace_id: str, run_id: UUID) -> list[AgentRunAttempt]:
        """Return the attempts of a run, in order."""
        table = agent_run_attempt
        rows = await self._connection.execute(
            select(table, ATTEMPT_COUNTED)
            .where(table.c.run_id == run_id, table.c.workspace_id == workspace_id)
            .order_by(table.c.attempt)
        )
        return [_read(row) for row in rows.mappings()]

    async def end(self, run: RunRow, end: AttemptEnd) -> None:
        """Note how the current attempt ended, where it could not say so itself. Its token dies (PM-4)."""
        table = agent_run_attempt
        await self._connection.execute(
            update(table)
            .where(
                table.c.run_id == run.run_id,
                table.c.attempt == run.current_attempt,
                table.c.outcome.is_(None),
            )
            .values(
                outcome=end.outcome,
                code=end.code,
                reason=end.reason,
                retryable=end.retryable,
                ended_at=func.now(),
                token_hash=None,
            )
        )

    async def read_end(self, run: RunRow) -> AttemptEnd | None:
        """Return how the current attempt ended, None while it has not."""
        row = await self._latest(run.run_id)
        if row is None or row["outcome"] is None:
            return None
        return AttemptEnd(row["outcome"], row["code"], row["reason"], bool(row["retryable"]))

    async def _latest(self, run_id: UUID) -> RowMapping | None:
        rows = await self._connection.execute(_LATEST, {"run_id": run_id})
        return rows.mappings().one_or_none()

    async def _close_lost(self, run: RunRow, lost: RowMapping) -> None:
        await self.end(run, AttemptEnd("lost", RunFailureCode.RUNNER_LOST.value, retryable=True))
        await self._ledger.append_host(
            run.run_id,
            HostEventType.ATTEMPT_ENDED,
            {"outcome": "lost", "code": RunFailureCode.RUNNER_LOST.value},
            attempt=lost["attempt"],
        )

    async def _insert(self, run: RunRow, execution: ActivityExecution) -> OpenAttempt:
        attempt, token = run.current_attempt + 1, secrets.token_urlsafe(32)
        sequence = await self._connection.scalar(
            _OPEN,
            {
                "run_id": run.run_id,
                "attempt": attempt,
                "token_hash": hash_token(token),
                "temporal_run_id": execution.temporal_run_id,
                "activity_id": execution.activity_id,
                "activity_attempt": execution.activity_attempt,
                "worker_identity": execution.worker_identity,
                "type": HostEventType.ATTEMPT_STARTED.value,
                "data": dumps({"attempt": attempt, "runner_id": run.runner_id}),
            },
        )
        opened = replace(
            run,
            status=RunStatus.RUNNING,
            current_attempt=attempt,
            attempt_commits=0,
            attempt_outcome=None,
            last_sequence=cast("int", sequence),
        )
        return OpenAttempt(opened, attempt, token)

    async def _reopen(self, run: RunRow) -> OpenAttempt | AttemptEnd:
        """Answer an execution that asks again, because the answer to its first request was lost."""
        if run.attempt_outcome is not None:
            return await self.read_end(run) or AttemptEnd(run.attempt_outcome, run.status_code)
        token = secrets.token_urlsafe(32)
        table = agent_run_attempt
        await self._connection.execute(
            update(table)
            .where(table.c.run_id == run.run_id, table.c.attempt == run.current_attempt)
            .values(token_hash=hash_token(token))
        )
        return OpenAttempt(run, run.current_attempt, token)


def hash_token(token: str) -> bytes:
    """Return what is stored of a token: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).digest()


def _is_of(attempt: RowMapping, execution: ActivityExecution) -> bool:
    return (attempt["temporal_run_id"], attempt["activity_id"], attempt["activity_attempt"]) == (
        execution.temporal_run_id,
        execution.activity_id,
        execution.activity_attempt,
    )


def _refusal(
    run: RunRow, previous: RowMapping | None, execution: ActivityExecution, now: datetime
) -> AttemptEnd | None:
    if run.status.is_terminal:
        return AttemptEnd(run.status.value, run.status_code)
    if run.attempt_outcome is not None and previous is not None:
        # The attempt ended, its worker died before it could tell the workflow.
        return AttemptEnd(previous["outcome"], previous["code"], previous["reason"], bool(previous["retryable"]))
    if run.cancel_requested_at is not None:
        return AttemptEnd(RunStatus.CANCELLED.value, RunFailureCode.CANCELLED.value)
    if run.deadline_at is not None and run.deadline_at <= now:
        return AttemptEnd(RunStatus.TIMEOUT.value, RunFailureCode.RUNNER_TIMEOUT.value, retryable=True)
    if previous is not None and previous["completed_messages"]:
        return AttemptEnd(
            RunStatus.FAILED.value,
            RunFailureCode.RUNNER_LOST.value,
            "The worker was lost after it had said a complete message; starting again would say it twice.",
            retryable=True,
        )
    return None


def _read(row: RowMapping) -> AgentRunAttempt:
    return AgentRunAttempt(
        run_id=str(row["run_id"]),
        attempt=row["attempt"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        outcome=row["outcome"],
        code=row["code"],
        reason=row["reason"],
        retryable=row["retryable"],
        worker_identity=row["worker_identity"],
        temporal_run_id=row["temporal_run_id"],
        activity_attempt=row["activity_attempt"],
        completed_messages=row["completed_messages"],
        usage=attempt_usage(row["usage"], row["counted"]),
    )
