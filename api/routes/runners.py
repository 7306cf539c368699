"""Runners: what can be run."""

from fastapi import APIRouter

from api.auth import AuthenticatedRoute, RunReader
from api.encoding import JsonResponse
from api.models import RunnerRead
from api.paging import Page
from api.routes.responses import problems
from api.services import Host
from stores.runners import RunnerStore

router = APIRouter(prefix="/v1/runners", route_class=AuthenticatedRoute, tags=["agents"])


@router.get("", operation_id="listRunners", response_model=Page[RunnerRead], responses=problems())
async def list_runners(_caller: RunReader, host: Host) -> JsonResponse:
    """List the runners that workers offer, with what their configuration forms ask for."""
    async with host.reads.connect() as connection:
        runners = await RunnerStore(connection).list()
    items = [
        {
            "descriptor": runner.descriptor.model_dump(mode="json"),
            "task_queue": runner.task_queue,
            "is_stale": runner.is_stale,
            "last_seen_at": runner.last_seen_at,
        }
        for runner in runners
    ]
    return JsonResponse({"items": items, "next_cursor": None, "has_more": False})
