"""Models: what agents can be granted to call."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.paging import Page, PageQuery, Pager
from api.resource_models import ModelRead, ModelRequest
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import Identifier
from stores.models import ModelRow, ModelStore

router = APIRouter(prefix="/v1/models", route_class=AuthenticatedRoute, tags=["resources"])


@router.put("/{model_id:id}", operation_id="putModel", response_model=ModelRead, responses=problems(409, body=True))
async def put_model(model_id: Identifier, body: ModelRequest, caller: AgentWriter, host: Host) -> JsonResponse:
    """Create or replace a model. Runs use it as it is from their next call on."""
    async with host.engine.begin() as connection:
        model = await ModelStore(connection, caller.workspace_id).put(body.row(model_id))
    return JsonResponse(_read(model))


@router.get("", operation_id="listModels", response_model=Page[ModelRead], responses=problems(400))
async def list_models(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the models, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("models", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await ModelStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda model: model.model_id))


@router.get("/{model_id:id}", operation_id="getModel", response_model=ModelRead, responses=problems(404))
async def get_model(model_id: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read a model."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await ModelStore(connection, caller.workspace_id).get(model_id)))


@router.delete("/{model_id:id}", operation_id="deleteModel", status_code=204, responses=problems(404))
async def delete_model(model_id: Identifier, caller: AgentWriter, host: Host) -> Response:
    """Delete a model with its key, and take it back from open runs."""
    async with host.engine.begin() as connection:
        await ModelStore(connection, caller.workspace_id).delete(model_id)
    return Response(status_code=204)


def _read(model: ModelRow) -> Document:
    # Field by field: what is added to a row later is told on purpose, or not at all.
    return {
        "model_id": model.model_id,
        "name": model.name,
        "model_type": model.model_type,
        "provider": model.provider,
        "base_url": model.base_url,
        "model_name": model.model_name,
        "has_api_key": model.api_key is not None,
        "context_window_tokens": model.context_window_tokens,
        "default_args": model.default_args,
        "timeout_seconds": model.timeout_seconds,
        "enabled": model.enabled,
        "created_at": model.created_at,
        "updated_at": model.updated_at,
    }
