"""Knowledge bases that the run may use (PROTOCOL 9.3, D-13)."""

from host_api.definition import Call, host_method
from host_api.errors import not_found
from host_api.requirements import Granted, OpenRun
from runhost.protocol.host_api import (
    KnowledgeBaseInfo,
    KnowledgeBaseList,
    NoParams,
    RetrievalResult,
    RetrieveParams,
)
from stores.knowledge import KnowledgeStore


@host_method("list_knowledge_bases", OpenRun())
async def list_knowledge_bases(call: Call, params: NoParams) -> KnowledgeBaseList:
    """Answer the bases that are granted with the operation `list` and exist, in order of their ids."""
    authorization = call.session.authorization
    granted = [
        base.kb_id
        for base in authorization.resources.knowledge_bases
        if "list" in authorization.operations("knowledge_base", base.kb_id)
    ]
    if not granted:
        return KnowledgeBaseList()
    async with call.services.engine.connect() as connection:
        bases = await KnowledgeStore(connection, call.session.workspace_id).list_chosen(granted)
    return KnowledgeBaseList(
        items=[
            KnowledgeBaseInfo(kb_id=base.kb_id, kb_name=base.name, kb_type=base.kb_type, description=base.description)
            for base in bases
        ]
    )


@host_method("retrieve_knowledge", Granted("knowledge_base", "kb_id", frozenset({"retrieve"})))
async def retrieve_knowledge(call: Call, params: RetrieveParams) -> RetrievalResult:
    """Answer the passages of a base that fit a question, best first."""
    workspace_id = call.session.workspace_id
    async with call.services.engine.connect() as connection:
        base = await KnowledgeStore(connection, workspace_id).find(params.kb_id)
    provider = None if base is None else call.services.knowledge_providers.get(base.kb_type)
    if base is None or provider is None:
        raise not_found(f"kb_id: there is no knowledge base {params.kb_id!r}, or nobody serves its kind any more.")
    return await provider.retrieve(workspace_id, base, params)
