"""What a run touched through the host API, and what it was refused."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.models import AccessRead
from api.paging import Page, PageQuery, Pager
from api.routes.paths import RunId
from api.routes.responses import problems
from api.services import Host
from stores.accesses import AccessRow, AccessStore
from stores.runs import RunStore

router = APIRouter(prefix="/v1/runs/{run_id}/accesses", route_class=AuthenticatedRoute, tags=["runs"])


@router.get("", operation_id="listRunAccesses", response_model=Page[AccessRead], responses=problems(400, 404))
async def list_accesses(
    run_id: RunId, query: Annotated[PageQuery, Query()], caller: RunReader, host: Host
) -> JsonResponse:
    """Page the calls that a run made of the host API, newest first, granted and refused ones."""
    pager = Pager(host.cursors, query.list_name("accesses", caller.workspace_id, run_id=str(run_id)), int)
    async with host.reads.connect() as connection:
        await RunStore(connection).get(caller.workspace_id, run_id)
        found = await AccessStore(connection, caller.workspace_id).list_of_run(
            run_id, before=pager.position(query), limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda access: access.access_id))


def _read(access: AccessRow) -> Document:
    return {
        "run_id": str(access.run_id),
        "attempt": access.attempt,
        "runner_id": access.runner_id,
        "action": access.action,
        "resource": access.resource,
        "scope": access.scope,
        "result": access.result,
        "duration_ms": access.duration_us / 1_000,
        "created_at": access.created_at,
    }
