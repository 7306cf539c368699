"""Looking inside a run: its ledger, paged or live, its attempts, its artifacts."""

import re
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from api.auth import AuthenticatedRoute, RunReader
from api.encoding import JsonResponse
from api.models import ArtifactRead
from api.paging import Page, PageQuery, Pager
from api.problems import invalid
from api.routes.paths import RunId
from api.routes.reads import read_artifact
from api.routes.responses import problems
from api.services import Host
from api.stream_response import EventStreamResponse
from runhost.protocol import AgentRun, AgentRunAttempt, AgentRunEvent
from stores.artifacts import ArtifactStore
from stores.attempts import AttemptStore
from stores.ledger import LedgerStore, read_document
from stores.runs import RunStore

router = APIRouter(prefix="/v1/runs/{run_id}", route_class=AuthenticatedRoute, tags=["runs"])

_SEQUENCE = re.compile(r"[0-9]{1,18}")


class LedgerQuery(PageQuery):
    """Order of the ledger."""

    order: Literal["asc", "desc"] = "asc"


@router.get("/events", operation_id="listRunEvents", response_model=Page[AgentRunEvent], responses=problems(400, 404))
async def list_run_events(
    run_id: RunId, query: Annotated[LedgerQuery, Query()], caller: RunReader, host: Host
) -> JsonResponse:
    """Page the ledger of a run, oldest first unless asked otherwise.

    Oldest first, a page that is not the last one *yet* has a `next_cursor` too: a run that goes on can be
    followed with it.
    """
    pager = Pager(host.cursors, query.list_name("ledger", caller.workspace_id, run_id=str(run_id)), int)
    position = pager.position(query)
    is_descending = query.order == "desc"
    async with host.reads.connect() as connection:
        await RunStore(connection).get(caller.workspace_id, run_id)
        found = await LedgerStore(connection).rows(
            run_id,
            after=0 if is_descending or position is None else position,
            before=position if is_descending else None,
            limit=query.size + 1,
            newest_first=is_descending,
        )
    page = pager.page(found, query.size, read=read_document, position_of=lambda row: row["sequence"])
    if not is_descending and not page["has_more"]:
        page["next_cursor"] = pager.cursor(found[-1]["sequence"]) if found else query.cursor
    return JsonResponse(page)


@router.get(
    "/stream",
    operation_id="streamRun",
    status_code=200,
    response_class=Response,
    responses={
        200: {"description": "One frame per ledger row.", "content": {"text/event-stream": {}}},
        204: {"description": "The run has ended and the reader has seen all of it."},
        **problems(400, 404),
    },
)
async def stream_run(
    run_id: RunId,
    caller: RunReader,
    host: Host,
    last_event_id: Annotated[
        str | None, Header(description="Sequence of the last row seen; wins over `after`.")
    ] = None,
    after: Annotated[str | None, Query(description="Sequence of the last row seen.")] = None,
) -> Response:
    """Follow the ledger of a run: what is there, then what comes, until the run has ended.

    A reader that was cut off goes on with `Last-Event-ID`. One that comes back to a run it has seen the end
    of gets 204, which tells browsers not to come back again.
    """
    async with host.reads.connect() as connection:
        run = await RunStore(connection).get(caller.workspace_id, run_id)
    if last_event_id is not None:
        position = _position("Last-Event-ID", last_event_id, run)
    else:
        position = 0 if after is None else _position("after", after, run)
    if run.status.is_terminal and position == run.last_sequence:
        return Response(status_code=204)
    return EventStreamResponse(host.hub.follow(run_id, position))


@router.get("/attempts", operation_id="listAttempts", response_model=Page[AgentRunAttempt], responses=problems(404))
async def list_attempts(run_id: RunId, caller: RunReader, host: Host) -> JsonResponse:
    """List the attempts of a run, in order."""
    async with host.reads.connect() as connection:
        await RunStore(connection).get(caller.workspace_id, run_id)
        attempts = await AttemptStore(connection).list(caller.workspace_id, run_id)
    items = [attempt.model_dump(mode="json") for attempt in attempts]
    return JsonResponse({"items": items, "next_cursor": None, "has_more": False})


@router.get(
    "/artifacts", operation_id="listRunArtifacts", response_model=Page[ArtifactRead], responses=problems(400, 404)
)
async def list_run_artifacts(
    run_id: RunId, query: Annotated[PageQuery, Query()], caller: RunReader, host: Host
) -> JsonResponse:
    """Page the artifacts of a run, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("run_artifacts", caller.workspace_id, run_id=str(run_id)), str)
    async with host.reads.connect() as connection:
        await RunStore(connection).get(caller.workspace_id, run_id)
        found = await ArtifactStore(connection, caller.workspace_id).list_of_run(
            run_id, after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(
        pager.page(found, query.size, read=read_artifact, position_of=lambda artifact: artifact.artifact_id)
    )


def _position(field: str, text: str, run: AgentRun) -> int:
    if not _SEQUENCE.fullmatch(text):
        raise invalid(field, "must be the sequence of a ledger row, a whole number from 0", text)
    if int(text) > run.last_sequence:
        raise invalid(field, f"lies beyond the newest row of the run, {run.last_sequence}", text)
    return int(text)
