"""The event log: every incoming event, and the audit rows that runs cause."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import RowMapping, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentEventEnvelope, JsonObject
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
