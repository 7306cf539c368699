"""The transcript of the run's own conversation and thread (PROTOCOL 9.4, HOST 12, D-46, D-47)."""

from host_api.cursors import position_behind
from host_api.definition import Call, host_method
from host_api.requirements import Available
from host_api.scopes import fence_of, fenced, scope_of
from runhost.protocol import HistoryPage, HistorySearchResult
from runhost.protocol.host_api import MAX_PAGE_ITEMS, HistoryPageParams, HistorySearchParams
from stores.history import AFTER_ALL, BEFORE_ALL, HistoryStore, SearchFilter


@host_method("history_page", Available("history_page", conversation_field="conversation_id"), is_fenced=True)
async def history_page(call: Call, params: HistoryPageParams) -> HistoryPage:
    """Page the transcript, at most 100 items at once; the newest item is that of the run's own event.

    `backward` begins at the newest item, `forward` at the oldest (D-46). Either cursor cuts off what lies on its
    other side, and with both the page lies between them; the item of a cursor is never part of the page. So
    `next_cursor` is to be given as `before_cursor` going backward, as `after_cursor` going forward, and either way
    `covers_until` of a checkpoint as `after_cursor` leaves out what its summary covers (PROTOCOL 12).

    Raises:
        HostCallError: `invalid_argument`: a cursor of another conversation, made up, or changed; `unauthorized`:
            the attempt has ended.
    """
    history = _history(call)
    limit = min(params.limit, MAX_PAGE_ITEMS)
    after = position_behind("after_cursor", params.after_cursor, history.position, BEFORE_ALL)
    before = position_behind("before_cursor", params.before_cursor, history.position, AFTER_ALL)
    with fenced():
        found = await history.page(
            fence_of(call.session),
            after=after,
            before=before,
            newest_first=params.direction == "backward",
            with_artifacts=params.include_artifacts,
            # One more than the page has says whether there are more (H-P1).
            limit=limit + 1,
        )
    items, has_more = found[:limit], len(found) > limit
    return HistoryPage(
        items=items,
        next_cursor=items[-1].cursor if has_more else None,
        prev_cursor=items[0].cursor if items else None,
        has_more=has_more,
    )


@host_method("history_search", Available("history_search"))
async def history_search(call: Call, params: HistorySearchParams) -> HistorySearchResult:
    """Find items by words or by a part of the text, newest first, at most 100; artifact references included (H-P6)."""
    filters = params.filters
    narrowed = SearchFilter(**filters.model_dump()) if filters else SearchFilter()
    items = await _history(call).search(params.query, narrowed, limit=min(params.top_k, MAX_PAGE_ITEMS))
    return HistorySearchResult(items=items, query=params.query)


def _history(call: Call) -> HistoryStore:
    return HistoryStore(call.services.pool, call.services.cursors, scope_of(call.session))
