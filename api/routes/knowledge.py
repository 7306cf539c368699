"""Knowledge bases, and questions to them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.announcements import tell_readers
from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.knowledge_models import BaseId, KnowledgeBaseRead, KnowledgeBaseRequest, QuestionRequest
from api.paging import Page, PageQuery, Pager
from api.problems import Problem
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import ErrorCode
from runhost.protocol.host_api import RetrievalResult
from stores.knowledge import KnowledgeBaseRow, KnowledgeStore
from stores.revocations import revoke_everywhere

router = APIRouter(prefix="/v1/knowledge-bases", route_class=AuthenticatedRoute, tags=["knowledge"])


@router.put(
    "/{kb_id}", operation_id="putKnowledgeBase", response_model=KnowledgeBaseRead, responses=problems(body=True)
)
async def put_knowledge_base(
    kb_id: BaseId, body: KnowledgeBaseRequest, caller: AgentWriter, host: Host
) -> JsonResponse:
    """Create or change a knowledge base. Its documents stay."""
    new = body.model_dump(mode="json") | {"name": body.name or kb_id}
    async with host.engine.begin() as connection:
        base = await KnowledgeStore(connection, caller.workspace_id).put(kb_id, new)
    return JsonResponse(_read(base))


@router.get("", operation_id="listKnowledgeBases", response_model=Page[KnowledgeBaseRead], responses=problems(400))
async def list_knowledge_bases(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the knowledge bases, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("knowledge bases", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await KnowledgeStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda base: base.kb_id))


@router.get("/{kb_id}", operation_id="getKnowledgeBase", response_model=KnowledgeBaseRead, responses=problems(404))
async def get_knowledge_base(kb_id: BaseId, caller: RunReader, host: Host) -> JsonResponse:
    """Read a knowledge base."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await KnowledgeStore(connection, caller.workspace_id).get(kb_id)))


@router.delete("/{kb_id}", operation_id="deleteKnowledgeBase", status_code=204, responses=problems(404))
async def delete_knowledge_base(kb_id: BaseId, caller: AgentWriter, host: Host) -> Response:
    """Delete a knowledge base with its documents, and take it back from open runs."""
    async with host.engine.begin() as connection:
        await KnowledgeStore(connection, caller.workspace_id).delete(kb_id)
        revoked = await revoke_everywhere(
            connection, caller.workspace_id, "knowledge_base", kb_id, "The knowledge base was deleted."
        )
    for run_id, sequence in revoked:
        await tell_readers(host.engine, run_id, sequence)
    return Response(status_code=204)


# No idempotency key: it only reads, and is a POST because questions are long.
@router.post(
    "/{kb_id}/retrieve",
    operation_id="retrieveKnowledge",
    response_model=RetrievalResult,
    responses=problems(404, body=True),
)
async def retrieve_knowledge(kb_id: BaseId, body: QuestionRequest, caller: RunReader, host: Host) -> JsonResponse:
    """Ask a knowledge base, as the runs do that it is granted to."""
    async with host.reads.connect() as connection:
        base = await KnowledgeStore(connection, caller.workspace_id).get(kb_id)
    provider = host.host_api.services.knowledge_providers.get(base.kb_type)
    if provider is None:
        raise Problem(404, ErrorCode.NOT_FOUND, f"Nobody here serves knowledge bases of the kind {base.kb_type!r}.")
    result = await provider.retrieve(caller.workspace_id, base, body.params(kb_id))
    return JsonResponse(result.model_dump(mode="json"))


def _read(base: KnowledgeBaseRow) -> Document:
    return {
        "kb_id": base.kb_id,
        "name": base.name,
        "description": base.description,
        "kb_type": base.kb_type,
        "config": base.config,
        "created_at": base.created_at,
        "updated_at": base.updated_at,
    }
