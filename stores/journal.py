"""One commit of a run's journal: ledger rows and everything they cause, in one statement (INV-4).

The update of the run row does three things at once: it gives the sequences, it checks the fence, and its row
lock orders this commit against every other write to the run (DESIGN 7). What the rows cause rides along as
further branches of the same statement, so there is nothing between them that could fail on its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import asyncpg

from runhost.protocol import JsonObject, JsonValue
from stores.escaping import escape
from stores.jsonb import dumps


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A row to be.

    Attributes:
        source_sequence: The runner's number, unique within the attempt; None makes it a row of the host.
        data: JSON text, ready for the column (`stores.jsonb.dumps`): it was encoded once, to be measured.
        extras: Rare columns: ``usage``, ``artifact_refs``, ``metadata``.
    """

    type: str
    data: str
    source_sequence: int | None = None
    extras: JsonObject | None = None


@dataclass(slots=True)
class Projections:
    """What the rows of one commit cause elsewhere. ``position`` is the row's place in the batch, from 1.

    Each entry is an object whose keys are the columns named in this module's statements.
    """

    transcript: list[JsonObject] = field(default_factory=list[JsonObject])
    artifacts: list[JsonObject] = field(default_factory=list[JsonObject])
    blobs: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    state: list[JsonObject] = field(default_factory=list[JsonObject])
    events: list[JsonObject] = field(default_factory=list[JsonObject])


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended. After the commit that carries it, the attempt writes nothing more (INV-6)."""

    outcome: str
    code: str | None = None
    reason: str | None = None
    retryable: bool = False


@dataclass(slots=True)
class Batch:
    """One commit of one attempt.

    Attributes:
        commit: How many commits this attempt has made before. The statement passes only on that number, so a
            commit whose answer was lost can be sent again: it cannot happen twice.
        usage: The run's new total, when it changed.
        attempt_usage: The attempt's new total, when it changed.
    """

    run_id: UUID
    attempt: int
    commit: int
    rows: list[LedgerRow] = field(default_factory=list[LedgerRow])
    projections: Projections = field(default_factory=Projections)
    completed_messages: int = 0
    usage: JsonObject | None = None
    attempt_usage: JsonObject | None = None
    end: AttemptEnd | None = None


_RUN = """
WITH run AS (
    UPDATE agent_run
    SET last_sequence = last_sequence + $3, attempt_commits = attempt_commits + 1,
        attempt_outcome = $5, usage = COALESCE($6::jsonb, usage), updated_at = now()
    WHERE run_id = $1 AND current_attempt = $2 AND attempt_commits = $4
        AND attempt_outcome IS NULL AND status = 'running'
    RETURNING run_id, workspace_id, bot_id, conversation_id, thread_id, runner_id, last_sequence - $3 AS base
), ledger AS (
    INSERT INTO agent_run_event
        (run_id, sequence, workspace_id, attempt, source, source_sequence, type, data, usage, artifact_refs, metadata)
    SELECT run.run_id, run.base + r.position, run.workspace_id, $2,
        CASE WHEN r.source_sequence IS NULL THEN 'host' ELSE 'runner' END, r.source_sequence, r.type,
        r.data::jsonb, r.extras::jsonb -> 'usage', r.extras::jsonb -> 'artifact_refs', r.extras::jsonb -> 'metadata'
    FROM run, unnest($7::bigint[], $8::text[], $9::text[], $10::text[])
        WITH ORDINALITY AS r(source_sequence, type, data, extras, position)
)"""

_ATTEMPT = """, attempt AS (
    UPDATE agent_run_attempt a
    SET completed_messages = a.completed_messages + $11, usage = COALESCE($12::jsonb, a.usage),
        outcome = $5, code = $13, reason = $14, retryable = $15,
        ended_at = CASE WHEN $5::text IS NULL THEN NULL ELSE now() END,
        token_hash = CASE WHEN $5::text IS NULL THEN a.token_hash END
    FROM run WHERE a.run_id = run.run_id AND a.attempt = $2
), items AS (
    INSERT INTO transcript (transcript_id, workspace_id, bot_id, conversation_id, thread_id, event_id, role,
        item_type, content, content_json, artifact_refs, run_id, sequence, attempt, runner_id, metadata)
    SELECT p.transcript_id, run.workspace_id, run.bot_id, run.conversation_id, run.thread_id,
        run.run_id || ':' || (run.base + p.position), p.role, p.item_type, p.content, p.content_json,
        p.artifact_refs, run.run_id, run.base + p.position, $2, run.runner_id, p.metadata
    FROM run, jsonb_to_recordset($16::jsonb) AS p(position bigint, transcript_id uuid, role text, item_type text,
        content text, content_json jsonb, artifact_refs jsonb, metadata jsonb)
    WHERE run.conversation_id IS NOT NULL
), blobs AS (
    INSERT INTO artifact_blob (workspace_id, sha256, content)
    SELECT run.workspace_id, b.sha256, b.content
    FROM run, unnest($17::text[], $18::bytea[]) AS b(sha256, content)
    ON CONFLICT DO NOTHING
), artifacts AS (
    INSERT INTO artifact (workspace_id, artifact_id, artifact_type, mime_type, name, size_bytes, sha256, source,
        storage_type, bot_id, conversation_id, thread_id, run_id, sequence, runner_id, metadata)
    SELECT run.workspace_id, p.artifact_id, p.artifact_type, p.mime_type, p.name, p.size_bytes, p.sha256, p.source,
        p.storage_type, run.bot_id, run.conversation_id, run.thread_id, run.run_id, run.base + p.position,
        run.runner_id, p.metadata
    FROM run, jsonb_to_recordset($19::jsonb) AS p(position bigint, artifact_id text, artifact_type text,
        mime_type text, name text, size_bytes bigint, sha256 text, source text, storage_type text, metadata jsonb)
), states AS (
    INSERT INTO runner_state (scope_key, state_key, workspace_id, scope, runner_id, binding_identity,
        conversation_id, value, run_id, sequence)
    SELECT p.scope_key, p.state_key, run.workspace_id, p.scope, run.runner_id, p.binding_identity,
        run.conversation_id, p.value, run.run_id, run.base + p.position
    FROM run, jsonb_to_recordset($20::jsonb) AS p(position bigint, scope_key text, state_key text, scope text,
        binding_identity text, value jsonb)
    ON CONFLICT (scope_key, state_key) DO UPDATE
    SET value = excluded.value, run_id = excluded.run_id, sequence = excluded.sequence, updated_at = now()
), events AS (
    INSERT INTO event_log (workspace_id, event_id, event_type, event_time, source, bot_id, conversation_id,
        thread_id, input_summary, run_id, sequence, runner_id, metadata)
    SELECT run.workspace_id, run.run_id || ':' || (run.base + p.position), p.event_type, now(), 'runner',
        run.bot_id, run.conversation_id, run.thread_id, p.input_summary, run.run_id, run.base + p.position,
        run.runner_id, p.metadata
    FROM run, jsonb_to_recordset($21::jsonb) AS p(position bigint, event_type text, input_summary text, metadata jsonb)
)"""

_ANSWER = "\nSELECT base FROM run"

_ROWS_ONLY = _RUN + _ANSWER
_WITH_PROJECTIONS = _RUN + _ATTEMPT + _ANSWER


class JournalStore:
    """Writes commits, each one statement in a transaction of its own.

    It uses the driver's pool (`stores.driver`): a worker commits thousands of times a second, and what
    SQLAlchemy adds to each would be half of their cost.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def commit(self, batch: Batch) -> int | None:
        """Write ``batch``; return the sequence before its first row.

        Returns None, and has written nothing, where the fence has passed, the attempt or the run has ended,
        or ``batch.commit`` is not the attempt's next number. The run's row tells which.
        """
        sql, arguments = _statement(batch)
        return cast("int | None", await self._pool.fetchval(sql, *arguments))


def _statement(batch: Batch) -> tuple[str, Sequence[Any]]:
    rows, end = batch.rows, batch.end
    arguments: list[Any] = [
        batch.run_id,
        batch.attempt,
        len(rows),
        batch.commit,
        end.outcome if end else None,
        _json(batch.usage),
        [row.source_sequence for row in rows],
        [row.type for row in rows],
        [row.data for row in rows],
        # Empty where no row has any, as most: the shorter array is filled up with nulls.
        [row.extras and dumps(row.extras) for row in rows] if any(row.extras for row in rows) else [],
    ]
    projections = batch.projections
    if not (end or batch.completed_messages or batch.attempt_usage or _any(projections)):
        return _ROWS_ONLY, arguments
    arguments += [
        batch.completed_messages,
        _json(batch.attempt_usage),
        end.code if end else None,
        escape(end.reason) if end and end.reason else None,
        end.retryable if end else None,
        dumps(cast("JsonValue", projections.transcript)),
        [sha256 for sha256, _ in projections.blobs],
        [content for _, content in projections.blobs],
        dumps(cast("JsonValue", projections.artifacts)),
        dumps(cast("JsonValue", projections.state)),
        dumps(cast("JsonValue", projections.events)),
    ]
    return _WITH_PROJECTIONS, arguments


def _any(projections: Projections) -> bool:
    return bool(
        projections.transcript or projections.artifacts or projections.blobs or projections.state or projections.events
    )


def _json(value: JsonObject | None) -> str | None:
    return None if value is None else dumps(value)
