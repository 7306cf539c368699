"""The event log of the run's own conversation (PROTOCOL 9.5, H-P9)."""

from host_api.cursors import position_behind
from host_api.definition import Call, host_method
from host_api.requirements import Available
from host_api.scopes import scope_of
from runhost.protocol import AgentEventRecord, EventPage
from runhost.protocol.host_api import MAX_PAGE_ITEMS, EventGetParams, EventPageParams
from stores.conversation_events import ConversationEvents
from stores.history import AFTER_ALL


@host_method("event_get", Available("event_get", resource_field="event_id"))
async def event_get(call: Call, params: EventGetParams) -> AgentEventRecord:
    """Read an event of the run's conversation, or the one that led to the run.

    Raises:
        EventNotFound: There is none in the run's scope; elsewhere or nowhere is all the same.
    """
    return await _events(call).get(params.event_id)


@host_method("event_page", Available("event_page", conversation_field="conversation_id"))
async def event_page(call: Call, params: EventPageParams) -> EventPage:
    """Page the events of the run's conversation, newest first, at most 100 at once; none without a conversation.

    Raises:
        HostCallError: `invalid_argument`: a cursor of another conversation, made up, or changed.
    """
    events = _events(call)
    limit = min(params.limit, MAX_PAGE_ITEMS)
    found = await events.page(
        params.event_types,
        before=position_behind("before_cursor", params.before_cursor, events.position, AFTER_ALL),
        limit=limit + 1,
    )
    items, has_more = found[:limit], len(found) > limit
    return EventPage(
        items=items,
        next_cursor=items[-1].cursor if has_more else None,
        prev_cursor=items[0].cursor if items else None,
        has_more=has_more,
    )


def _events(call: Call) -> ConversationEvents:
    return ConversationEvents(call.services.pool, call.services.cursors, scope_of(call.session))
