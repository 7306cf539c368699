"""The event log: every incoming event, and the audit rows that runs cause."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import RowMapping, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentEventEnvelope, JsonObject
from stores.errors import EventNotFound
from stores.redaction import SUMMARY_CHARACTERS, cut, input_text, redact_elements
from stores.tables import event_log
from stores.times import from_epoch


@dataclass(frozen=True)
class RecordedEvent:
    """What the log knows of an incoming event.

    Attributes:
        disposition: ``run_started``, ``ignored`` or ``binding_ambiguous``.
        outcome: What a redelivery is told besides: ``binding_ids`` of an ambiguous one.
    """

    event_id: str
    content_hash: bytes
    disposition: str
    outcome: JsonObject
    run_id: UUID | None


@dataclass(frozen=True)
class LoggedEvent:
    """A row of the event log as its readers see it.

    Attributes:
        seq: Position in the log.
        event_time: When it happened; ``created_at`` is when it was logged.
        input_summary: What was written, cut at 1,000 characters.
        disposition: What became of an incoming event; None for rows that the host wrote itself.
        run_id: The run that it led to, or that caused it.
        sequence: The ledger row that caused it.
    """

    seq: int
    event_id: str
    event_type: str
    event_time: datetime | None
    source: str
    source_event_type: str | None
    bot_id: str | None
    workspace_id: str
    conversation_id: str | None
    thread_id: str | None
    actor_type: str | None
    actor_id: str | None
    actor_name: str | None
    subject_type: str | None
    subject_id: str | None
    input_summary: str | None
    disposition: str | None
    run_id: UUID | None
    sequence: int | None
    runner_id: str | None
    metadata: JsonObject
    created_at: datetime


@dataclass(frozen=True)
class EventLogFilter:
    """Which events a list shows; what is None does not narrow it."""

    event_type: str | None = None
    source: str | None = None
    bot_id: str | None = None
    conversation_id: str | None = None
    run_id: UUID | None = None


_LOGGED = [event_log.c[item.name] for item in fields(LoggedEvent)]


class EventStore:
    """Events of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def find(self, event_id: str) -> RecordedEvent | None:
        """Return an incoming event, or None where it never came."""
        columns = event_log.c
        row = await self._connection.execute(
            select(columns.event_id, columns.content_hash, columns.disposition, columns.outcome, columns.run_id).where(
                columns.workspace_id == self._workspace_id,
                columns.event_id == event_id,
                columns.content_hash.is_not(None),
            )
        )
        found = row.mappings().one_or_none()
        return None if found is None else _read(found)

    async def get(self, event_id: str) -> LoggedEvent:
        """Return a row of the log.

        Raises:
            EventNotFound: There is none in this workspace.
        """
        rows = await self._connection.execute(
            select(*_LOGGED).where(event_log.c.workspace_id == self._workspace_id, event_log.c.event_id == event_id)
        )
        row = rows.mappings().one_or_none()
        if row is None:
            raise EventNotFound(f"There is no event {event_id!r} in this workspace.")
        return LoggedEvent(**row)

    async def list(self, narrowed: EventLogFilter, *, before: int | None = None, limit: int) -> list[LoggedEvent]:
        """Return rows older than position ``before``, newest first."""
        query = select(*_LOGGED).where(event_log.c.workspace_id == self._workspace_id)
        for name, value in asdict(narrowed).items():
            if value is not None:
                query = query.where(event_log.c[name] == value)
        if before is not None:
            query = query.where(event_log.c.seq < before)
        rows = await self._connection.execute(query.order_by(event_log.c.seq.desc()).limit(limit))
        return [LoggedEvent(**row) for row in rows.mappings()]

    async def record(self, envelope: AgentEventEnvelope, event: RecordedEvent, *, runner_id: str | None) -> bool:
        """Log an incoming event with what becomes of it.

        Returns False, and has written nothing, where the id is taken: another request was first. Waits for
        such a request to commit or to give up.
        """
        actor, subject = envelope.actor, envelope.subject
        stored = envelope.model_dump(mode="json", exclude_none=True)
        stored["input"]["contents"] = redact_elements(envelope.input.contents)
        inserted = await self._connection.execute(
            insert(event_log)
            .values(
                workspace_id=self._workspace_id,
                event_id=envelope.event_id,
                event_type=envelope.event_type,
                event_time=from_epoch(envelope.event_time),
                source=envelope.source,
                source_event_type=envelope.source_event_type,
                bot_id=envelope.bot_id,
                conversation_id=envelope.conversation_id,
                thread_id=envelope.thread_id,
                actor_type=actor and actor.actor_type,
                actor_id=actor and actor.actor_id,
                actor_name=actor and actor.actor_name,
                subject_type=subject and subject.subject_type,
                subject_id=subject and subject.subject_id,
                input_summary=cut(input_text(envelope.input), SUMMARY_CHARACTERS) or None,
                envelope=stored,
                content_hash=event.content_hash,
                disposition=event.disposition,
                outcome=event.outcome,
                run_id=event.run_id,
                runner_id=runner_id,
            )
            .on_conflict_do_nothing(index_elements=[event_log.c.workspace_id, event_log.c.event_id])
        )
        return inserted.rowcount == 1


def _read(row: RowMapping) -> RecordedEvent:
    return RecordedEvent(
        event_id=row["event_id"],
        content_hash=row["content_hash"],
        disposition=row["disposition"],
        outcome=row["outcome"] or {},
        run_id=row["run_id"],
    )
