"""For those who operate the process: does it live, can it work, how much does it do."""

import asyncio
from datetime import timedelta
from typing import Literal

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from sqlalchemy import text
from starlette.responses import Response
from temporalio.service import RPCError

from api.encoding import JsonResponse
from api.services import Host, Services
from stores.availability import is_unavailable

router = APIRouter(tags=["operation"])

CHECK_TIMEOUT_SECONDS = 2.0


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"]
    version: str


class Readiness(BaseModel):
    """What the process depends on. Without Temporal it still takes events; they start when it is back."""

    status: Literal["ready", "unavailable"]
    database: Literal["ok", "unavailable"]
    temporal: Literal["ok", "unavailable"]


@router.get("/healthz", operation_id="getHealth", response_model=Health)
async def get_health(host: Host) -> JsonResponse:
    """Say that the process lives."""
    return JsonResponse({"status": "ok", "version": host.dependencies.version})


@router.get(
    "/readyz",
    operation_id="getReadiness",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "The database cannot be reached."}},
)
async def get_readiness(host: Host) -> JsonResponse:
    """Say whether requests can be served: they can when the database answers."""
    database, temporal = await asyncio.gather(_database_answers(host), _temporal_answers(host))
    body = {
        "status": "ready" if database else "unavailable",
        "database": "ok" if database else "unavailable",
        "temporal": "ok" if temporal else "unavailable",
    }
    return JsonResponse(body, 200 if database else 503)


@router.get(
    "/metrics",
    operation_id="getMetrics",
    response_class=Response,
    responses={200: {"description": "Text format of Prometheus.", "content": {"text/plain": {}}}},
)
async def get_metrics(host: Host) -> Response:
    """Return the figures of this process."""
    return Response(host.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


async def _database_answers(host: Services) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS), host.reads.connect() as connection:
            await connection.execute(text("SELECT 1"))
    except Exception as error:
        if not is_unavailable(error):
            raise
        return False
    return True


async def _temporal_answers(host: Services) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            service = host.dependencies.temporal.service_client
            return await service.check_health(timeout=timedelta(seconds=CHECK_TIMEOUT_SECONDS))
    # RuntimeError is what the client raises where it cannot connect.
    except (RPCError, RuntimeError, TimeoutError):
        return False
