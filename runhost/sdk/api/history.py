"""Prompt, history, events and steering: the context that a runner pulls (PROTOCOL 9.4, 9.5)."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final, Literal, TypeAlias

from runhost.protocol import (
    AgentEventRecord,
    EventPage,
    HistoryPage,
    HistorySearchResult,
    Message,
    SteeringPullResult,
    TranscriptItem,
)
from runhost.protocol.host_api import MAX_PAGE_ITEMS, HistoryFilters, Prompt
from runhost.sdk.api.calls import ProxyPart
from runhost.sdk.api.errors import malformed_answer

Direction: TypeAlias = Literal["backward", "forward"]
SteeringMode: TypeAlias = Literal["all", "one", "one-at-a-time", "one_at_a_time"]

_DEFAULT_PAGE_ITEMS: Final = 50


class HistoryCalls(ProxyPart):
    """Calls for prompt, history, events and steering; see `AgentRunAPIProxy`."""

    async def get_prompt(self) -> list[Message]:
        """Read the effective prompt of the entry, empty where there is none: then use the agent's own.

        Needs the flag `prompt_get`.
        """
        self._grants.check_api("prompt_get")
        return (await self._calls.call("get_prompt", Prompt)).messages

    async def history_page(
        self,
        conversation_id: str | None = None,
        before_cursor: str | None = None,
        after_cursor: str | None = None,
        limit: int = _DEFAULT_PAGE_ITEMS,
        direction: Direction = "backward",
        include_artifacts: bool = False,
    ) -> HistoryPage:
        """Read a page of the conversation. Needs the flag `history_page`.

        Args:
            conversation_id: None for the run's own; no other one is granted so far.
            before_cursor: Backward: only items older than this, else the newest.
            after_cursor: Forward: only items newer than this, else the oldest (D-46).
            limit: Items at most; the host caps at 100.
            direction: `backward` is newest first, `forward` oldest first. `next_cursor` leads on in it.
            include_artifacts: With references to artifacts, never their content.
        """
        self._grants.check_api("history_page")
        return await self._calls.call(
            "history_page",
            HistoryPage,
            conversation_id=conversation_id,
            before_cursor=before_cursor,
            after_cursor=after_cursor,
            limit=limit,
            direction=direction,
            include_artifacts=include_artifacts,
        )

    async def iter_history(
        self,
        *,
        after_cursor: str | None = None,
        before_cursor: str | None = None,
        direction: Direction = "backward",
        include_artifacts: bool = False,
    ) -> AsyncGenerator[TranscriptItem]:
        """Yield the items of the run's conversation, one page after the other, as far as they are read.

        Args:
            after_cursor: Forward: where to start, such as the `covers_until` of a checkpoint (PROTOCOL 12).
            before_cursor: Backward: where to start.
            direction: See `history_page`.
            include_artifacts: See `history_page`.
        """
        is_forward = direction == "forward"
        cursor = after_cursor if is_forward else before_cursor
        while True:
            page = await self.history_page(
                before_cursor=None if is_forward else cursor,
                after_cursor=cursor if is_forward else None,
                limit=MAX_PAGE_ITEMS,
                direction=direction,
                include_artifacts=include_artifacts,
            )
            for item in page.items:
                yield item
            if not page.has_more:
                return
            if page.next_cursor is None or page.next_cursor == cursor:
                raise malformed_answer("history_page", "there is more, but no cursor that leads on")
            cursor = page.next_cursor

    async def history_search(
        self, query: str, filters: HistoryFilters | None = None, top_k: int = 10
    ) -> HistorySearchResult:
        """Search the run's conversation and thread. Needs the flag `history_search`.

        Args:
            query: Words, or text as it stands (D-47).
            filters: What to narrow it to.
            top_k: Items at most; the host caps at 100.
        """
        self._grants.check_api("history_search")
        return await self._calls.call("history_search", HistorySearchResult, query=query, filters=filters, top_k=top_k)

    async def event_get(self, event_id: str) -> AgentEventRecord:
        """Read an event of the run's scope. Needs the flag `event_get`."""
        self._grants.check_api("event_get")
        return await self._calls.call("event_get", AgentEventRecord, event_id=event_id)

    async def event_page(
        self,
        conversation_id: str | None = None,
        event_types: Sequence[str] | None = None,
        before_cursor: str | None = None,
        limit: int = _DEFAULT_PAGE_ITEMS,
    ) -> EventPage:
        """Read a page of the event log, newest first. Needs the flag `event_page`.

        Args:
            conversation_id: None for the run's own; no other one is granted so far.
            event_types: Only these.
            before_cursor: Only events older than this.
            limit: Events at most; the host caps at 100.
        """
        self._grants.check_api("event_page")
        return await self._calls.call(
            "event_page",
            EventPage,
            conversation_id=conversation_id,
            event_types=None if event_types is None else list(event_types),
            before_cursor=before_cursor,
            limit=limit,
        )

    async def steering_pull(self, mode: SteeringMode = "all", limit: int | None = None) -> SteeringPullResult:
        """Take what was said to the run meanwhile, in order; it is not handed out again.

        Ask at a turn's boundary: after a batch of tool calls, before the next model call. Needs the flag
        `steering_pull`.

        Args:
            mode: `all`, or `one-at-a-time` for the oldest alone.
            limit: With `all`: at most so many; the host caps at 100.
        """
        self._grants.check_api("steering_pull")
        return await self._calls.call("steering_pull", SteeringPullResult, mode=mode, limit=limit)
