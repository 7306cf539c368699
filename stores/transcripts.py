"""The transcript: a conversation as people see it."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, RowMapping, and_, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentEventEnvelope, ArtifactRef, TranscriptItem
from stores.escaping import escape
from stores.identifiers import new_uuid
from stores.like import containing
from stores.redaction import TRANSCRIPT_CHARACTERS, cut, input_text, redact_elements
from stores.tables import transcript
from stores.times import to_epoch


@dataclass(frozen=True)
class ConversationScope:
    """Which conversation. Bot and thread narrow it where given; a thread of None means any."""

    conversation_id: str
    bot_id: str | None = None
    thread_id: str | None = None


class TranscriptStore:
    """Transcript items of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def add_user_item(
        self, envelope: AgentEventEnvelope, *, run_id: UUID, runner_id: str, artifact_refs: list[ArtifactRef]
    ) -> None:
        """Add what a person wrote. The event needs a conversation."""
        contents = redact_elements(envelope.input.contents)
        await self._connection.execute(
            insert(transcript).values(
                transcript_id=new_uuid(),
                workspace_id=self._workspace_id,
                bot_id=envelope.bot_id,
                conversation_id=envelope.conversation_id,
                thread_id=envelope.thread_id,
                event_id=envelope.event_id,
                role="user",
                content=cut(input_text(envelope.input), TRANSCRIPT_CHARACTERS),
                content_json={"role": "user", "content": contents or envelope.input.text},
                artifact_refs=[ref.model_dump(mode="json", exclude_none=True) for ref in artifact_refs],
                run_id=run_id,
                runner_id=runner_id,
            )
        )

    async def page(self, scope: ConversationScope, *, before: int | None = None, limit: int) -> list[TranscriptItem]:
        """Return items older than position ``before``, newest first."""
        condition = self._in(scope)
        if before is not None:
            condition = and_(condition, transcript.c.seq < before)
        return await self._read(condition, limit)

    async def search(
        self, scope: ConversationScope, query: str, *, before: int | None = None, limit: int
    ) -> list[TranscriptItem]:
        """Return items that contain the words of ``query``, or ``query`` as it stands, newest first (D-47)."""
        # Written as the index has it, or the index is not used.
        words = func.to_tsvector("simple", transcript.c.content)
        found = or_(
            words.op("@@")(func.plainto_tsquery("simple", escape(query))),
            transcript.c.content.ilike(containing(escape(query))),
        )
        condition = and_(self._in(scope), found)
        if before is not None:
            condition = and_(condition, transcript.c.seq < before)
        return await self._read(condition, limit)

    async def position_before(self, scope: ConversationScope, event_id: str) -> int | None:
        """Return the position of the newest item that is older than the item of ``event_id``.

        The thread is compared with None included, as the history of a run has it (D-46).
        """
        own = (
            select(func.min(transcript.c.seq))
            .where(transcript.c.workspace_id == self._workspace_id, transcript.c.event_id == event_id)
            .scalar_subquery()
        )
        return await self._connection.scalar(
            select(func.max(transcript.c.seq)).where(
                self._in(scope),
                transcript.c.thread_id == scope.thread_id,
                transcript.c.seq < func.coalesce(own, 2**62),
            )
        )

    def _in(self, scope: ConversationScope) -> ColumnElement[bool]:
        columns = transcript.c
        conditions = [
            columns.workspace_id == self._workspace_id,
            columns.conversation_id == scope.conversation_id,
        ]
        if scope.bot_id is not None:
            conditions.append(columns.bot_id == scope.bot_id)
        if scope.thread_id is not None:
            conditions.append(columns.thread_id == scope.thread_id)
        return and_(*conditions)

    async def _read(self, condition: ColumnElement[bool], limit: int) -> list[TranscriptItem]:
        rows = await self._connection.execute(
            select(transcript).where(condition).order_by(transcript.c.seq.desc()).limit(limit)
        )
        return [_item(row) for row in rows.mappings()]


def _item(row: RowMapping) -> TranscriptItem:
    return TranscriptItem(
        transcript_id=str(row["transcript_id"]),
        event_id=row["event_id"],
        conversation_id=row["conversation_id"],
        thread_id=row["thread_id"],
        role=row["role"],
        item_type=row["item_type"],
        content=row["content"],
        content_json=row["content_json"],
        artifact_refs=row["artifact_refs"],
        seq=row["seq"],
        created_at=to_epoch(row["created_at"]),
        metadata={**row["metadata"], "run_id": str(row["run_id"]), "sequence": row["sequence"]},
    )
