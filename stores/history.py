"""The transcript as a run reads it: its own conversation and thread, both ways, with cursors (PROTOCOL 9.4, D-46)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import asyncpg

from runhost.protocol import JsonObject, TranscriptItem
from stores.cursors import CursorSigner, InvalidCursor, transcript_query
from stores.escaping import escape, restore
from stores.fence import READING_ATTEMPT, Fence, stale
from stores.jsonb import loads
from stores.like import containing
from stores.run_scope import CONVERSATION, RunScope
from stores.times import from_epoch, to_epoch

BEFORE_ALL: Final = 0
AFTER_ALL: Final = 2**63 - 1
"""Positions around every item, for the ends of a window that are open."""

_COLUMNS = """seq, transcript_id::text, event_id, conversation_id, thread_id, role, item_type, content, content_json,
    run_id::text, sequence, metadata, created_at"""
# Written out for both cases: an index knows `IS NULL` and `=`, not `IS NOT DISTINCT FROM`.
_THREADS = {True: "thread_id = $3", False: "thread_id IS NULL AND $3::text IS NULL"}
_PAGES = {
    (in_thread, newest_first): f"""
WITH {READING_ATTEMPT}
SELECT page.* FROM fence LEFT JOIN LATERAL (
    SELECT {_COLUMNS}, CASE WHEN $9::boolean THEN artifact_refs END AS artifact_refs
    FROM transcript
    WHERE workspace_id = fence.workspace_id AND conversation_id = $4 AND {thread}
        AND ($5::text IS NULL OR bot_id = $5) AND seq > $6 AND seq < $7
    ORDER BY seq {order}
    LIMIT $8
) AS page ON true
ORDER BY seq {order}
"""  # noqa: S608 - constants only
    for in_thread, thread in _THREADS.items()
    for newest_first, order in ((True, "DESC"), (False, "ASC"))
}
# The words as the index has them, or the index is not used. Where the text is too short for a trigram, the
# conversation's own items are looked at (D-47).
_SEARCH = f"""
SELECT {_COLUMNS}, artifact_refs
FROM transcript
WHERE {CONVERSATION}
    AND (content ILIKE $6 OR to_tsvector('simple', content) @@ plainto_tsquery('simple', $5))
    AND ($7::text[] IS NULL OR role = ANY($7))
    AND ($8::text[] IS NULL OR item_type = ANY($8))
    AND ($9::text[] IS NULL OR EXISTS (
        SELECT FROM event_log e
        WHERE e.workspace_id = $1 AND e.event_id = transcript.event_id AND e.event_type = ANY($9)
    ))
    AND ($10::timestamptz IS NULL OR created_at >= $10)
    AND ($11::timestamptz IS NULL OR created_at < $11)
ORDER BY seq DESC
LIMIT $12
"""  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Narrows a search; what is None does not.

    Attributes:
        event_types: Types of the events that items stem from; items that runners wrote stem from none.
        after: Epoch seconds, inclusive.
        before: Epoch seconds, exclusive.
    """

    roles: Sequence[str] | None = None
    item_types: Sequence[str] | None = None
    event_types: Sequence[str] | None = None
    after: int | None = None
    before: int | None = None


class HistoryStore:
    """The transcript of one run's conversation. The user's item of the run's own event is part of it."""

    def __init__(self, pool: asyncpg.Pool, cursors: CursorSigner, scope: RunScope) -> None:
        self._pool = pool
        self._cursors = cursors
        self._scope = scope
        # No conversation has an empty id, so no cursor is good for a run without one.
        self._query = transcript_query(scope.workspace_id, scope.conversation_id or "", scope.bot_id, scope.thread_id)

    def position(self, cursor: str) -> int:
        """Return the position behind a cursor, such as `ctx.context.latest_cursor` or that of an item.

        Raises:
            InvalidCursor: It was made up, changed, or belongs to another conversation.
        """
        position = self._cursors.read(self._query, cursor)
        if not isinstance(position, int):
            raise InvalidCursor("it belongs to another query, or was changed")
        return position

    async def page(
        self,
        fence: Fence,
        *,
        after: int = BEFORE_ALL,
        before: int = AFTER_ALL,
        newest_first: bool,
        with_artifacts: bool,
        limit: int,
    ) -> list[TranscriptItem]:
        """Return items between the two positions, which are not included.

        Raises:
            StaleAttempt: The fence has passed.
        """
        scope = self._scope
        rows = await self._pool.fetch(
            _PAGES[scope.thread_id is not None, newest_first],
            fence.run_id,
            fence.attempt,
            scope.thread_id,
            scope.conversation_id,
            scope.bot_id,
            after,
            before,
            limit,
            with_artifacts,
        )
        if not rows:
            raise stale()
        # An open attempt without items has one row, of nulls.
        return [self._item(row) for row in rows if row["seq"] is not None]

    async def search(self, query: str, narrowed: SearchFilter, *, limit: int) -> list[TranscriptItem]:
        """Return items that contain the words of ``query``, or ``query`` as it stands, newest first (D-47)."""
        rows = await self._pool.fetch(
            _SEARCH,
            *self._scope.conversation,
            escape(query),
            containing(escape(query)),
            _escaped(narrowed.roles),
            _escaped(narrowed.item_types),
            _escaped(narrowed.event_types),
            from_epoch(narrowed.after),
            from_epoch(narrowed.before),
            limit,
        )
        return [self._item(row) for row in rows]

    def _item(self, row: asyncpg.Record) -> TranscriptItem:
        content, structured, references = row["content"], row["content_json"], row["artifact_refs"]
        # Not validated again: these are our own rows, and checking a page of them costs more than reading it.
        return TranscriptItem.model_construct(
            transcript_id=row["transcript_id"],
            event_id=row["event_id"],
            conversation_id=row["conversation_id"],
            thread_id=row["thread_id"],
            role=row["role"],
            item_type=row["item_type"],
            content=None if content is None else restore(content),
            content_json=None if structured is None else _object(structured),
            artifact_refs=[] if references is None else loads(references),
            seq=row["seq"],
            created_at=to_epoch(row["created_at"]),
            cursor=self._cursors.sign(self._query, row["seq"]),
            metadata={**_object(row["metadata"]), "run_id": row["run_id"], "sequence": row["sequence"]},
        )


def _object(text: str) -> JsonObject:
    return cast("JsonObject", loads(text))


def _escaped(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else [escape(value) for value in values]
