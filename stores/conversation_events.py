"""The event log as a run reads it: the events of its own conversation (PROTOCOL 9.5, H-P9)."""

from collections.abc import Sequence

import asyncpg

from runhost.protocol import AgentEventRecord
from stores.cursors import CursorSigner, InvalidCursor, event_query
from stores.errors import EventNotFound
from stores.escaping import escape, restore
from stores.history import AFTER_ALL
from stores.jsonb import loads
from stores.run_scope import CONVERSATION, READABLE, RunScope
from stores.times import to_epoch

_COLUMNS = """seq, event_id, event_type, event_time, source, bot_id, workspace_id, conversation_id, thread_id,
    actor_type, actor_id, actor_name, subject_type, subject_id, input_summary,
    envelope #>> '{raw_ref,ref_id}' AS raw_ref, metadata, created_at"""
_GET = f"SELECT {_COLUMNS} FROM event_log WHERE event_id = $6 AND {READABLE}"  # noqa: S608 - constants only
_PAGE = f"""
SELECT {_COLUMNS}
FROM event_log
WHERE {CONVERSATION} AND ($5::text[] IS NULL OR event_type = ANY($5)) AND seq < $6
ORDER BY seq DESC
LIMIT $7
"""  # noqa: S608 - constants only


class ConversationEvents:
    """Events that one run may read."""

    def __init__(self, pool: asyncpg.Pool, cursors: CursorSigner, scope: RunScope) -> None:
        self._pool = pool
        self._cursors = cursors
        self._scope = scope
        # No conversation has an empty id, so no cursor is good for a run without one.
        self._query = event_query(scope.workspace_id, scope.conversation_id or "", scope.bot_id, scope.thread_id)

    def position(self, cursor: str) -> int:
        """Return the position behind the cursor of an event.

        Raises:
            InvalidCursor: It was made up, changed, or belongs to another conversation.
        """
        position = self._cursors.read(self._query, cursor)
        if not isinstance(position, int):
            raise InvalidCursor("it belongs to another query, or was changed")
        return position

    async def get(self, event_id: str) -> AgentEventRecord:
        """Return an event of the run's conversation, or one that led to this run or was caused by it.

        Raises:
            EventNotFound: There is none that this run may read.
        """
        row = await self._pool.fetchrow(_GET, *self._scope.arguments, event_id)
        if row is None:
            raise EventNotFound(f"There is no event {event_id!r} that this run may read.")
        return self._record(row)

    async def page(
        self, event_types: Sequence[str] | None, *, before: int = AFTER_ALL, limit: int
    ) -> list[AgentEventRecord]:
        """Return events of the conversation that are older than a position, newest first."""
        types = None if event_types is None else [escape(event_type) for event_type in event_types]
        rows = await self._pool.fetch(_PAGE, *self._scope.conversation, types, before, limit)
        return [self._record(row) for row in rows]

    def _record(self, row: asyncpg.Record) -> AgentEventRecord:
        plain = (
            "event_id event_type source seq bot_id workspace_id conversation_id thread_id actor_type actor_id "
            "subject_type subject_id"
        )
        return AgentEventRecord.model_validate(
            {name: row[name] for name in plain.split()}
            | {name: row[name] and restore(row[name]) for name in ("actor_name", "input_summary", "raw_ref")}
            | {name: to_epoch(row[name]) for name in ("event_time", "created_at")}
            | {"metadata": loads(row["metadata"]), "cursor": self._cursors.sign(self._query, row["seq"])}
        )
