"""Conversations as people see them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from api.auth import AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.models import TranscriptItemRead
from api.paging import Page, PageQuery, Pager
from api.routes.reads import read_item
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import Identifier, TranscriptItem
from stores.cursors import transcript_query
from stores.transcripts import ConversationScope, TranscriptStore

router = APIRouter(prefix="/v1/conversations/{conversation_id:id}", route_class=AuthenticatedRoute, tags=["history"])


class TranscriptQuery(PageQuery):
    """Narrows a conversation; a bot or thread that is left out means any."""

    bot_id: Identifier | None = None
    thread_id: Identifier | None = None


class SearchQuery(TranscriptQuery):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=1_000, description="Words, or a part of the text.")]


@router.get(
    "/transcript", operation_id="getTranscript", response_model=Page[TranscriptItemRead], responses=problems(400)
)
async def get_transcript(
    conversation_id: Identifier, query: Annotated[TranscriptQuery, Query()], caller: RunReader, host: Host
) -> JsonResponse:
    """Page a conversation, newest first. One that nobody has written in is empty."""
    name = transcript_query(caller.workspace_id, conversation_id, query.bot_id, query.thread_id)
    pager = Pager(host.cursors, name, int)
    async with host.reads.connect() as connection:
        found = await TranscriptStore(connection, caller.workspace_id).page(
            ConversationScope(conversation_id, query.bot_id, query.thread_id),
            before=pager.position(query),
            limit=query.size + 1,
        )
    return JsonResponse(_page(pager, found, query.size))


@router.get(
    "/search", operation_id="searchTranscript", response_model=Page[TranscriptItemRead], responses=problems(400)
)
async def search_transcript(
    conversation_id: Identifier, query: Annotated[SearchQuery, Query()], caller: RunReader, host: Host
) -> JsonResponse:
    """Page the items of a conversation that contain the words, or the text as it stands, newest first."""
    name = query.list_name("search", caller.workspace_id, conversation_id=conversation_id)
    pager = Pager(host.cursors, name, int)
    async with host.reads.connect() as connection:
        found = await TranscriptStore(connection, caller.workspace_id).search(
            ConversationScope(conversation_id, query.bot_id, query.thread_id),
            query.query,
            before=pager.position(query),
            limit=query.size + 1,
        )
    return JsonResponse(_page(pager, found, query.size))


def _page(pager: Pager[int], found: list[TranscriptItem], size: int) -> Document:
    return pager.page(
        found,
        size,
        read=lambda item: read_item(item, pager.cursor(item.seq or 0)),
        position_of=lambda item: item.seq or 0,
    )
