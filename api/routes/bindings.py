"""Bindings: which events lead to which agent."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.models import BindingRead, BindingRequest
from api.paging import Page, PageQuery, Pager
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import Identifier
from stores.agents import AgentStore
from stores.bindings import Binding, BindingStore

router = APIRouter(prefix="/v1/bindings", route_class=AuthenticatedRoute, tags=["agents"])


@router.put(
    "/{binding_id:id}", operation_id="putBinding", response_model=BindingRead, responses=problems(404, body=True)
)
async def put_binding(binding_id: Identifier, body: BindingRequest, caller: AgentWriter, host: Host) -> JsonResponse:
    """Create or replace a binding."""
    new = body.model_dump(exclude={"scope"}) | body.scope.model_dump() | {"binding_id": binding_id}
    async with host.engine.begin() as connection:
        await AgentStore(connection, caller.workspace_id).get(body.agent_id)
        binding = await BindingStore(connection, caller.workspace_id).put(new)
    return JsonResponse(_read(binding))


@router.get("", operation_id="listBindings", response_model=Page[BindingRead], responses=problems(400))
async def list_bindings(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the bindings, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("bindings", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await BindingStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda binding: binding.binding_id))


@router.get("/{binding_id:id}", operation_id="getBinding", response_model=BindingRead, responses=problems(404))
async def get_binding(binding_id: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read a binding."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await BindingStore(connection, caller.workspace_id).get(binding_id)))


def _read(binding: Binding) -> Document:
    read = asdict(binding)
    scope = {"scope_type": read.pop("scope_type"), "scope_id": read.pop("scope_id")}
    return read | {"scope": scope}
