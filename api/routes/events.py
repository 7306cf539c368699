"""Events: post one, and read the log."""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.requests import Request

from api.acceptance import Answer
from api.auth import AuthenticatedRoute, EventWriter, RunReader
from api.encoding import Document, JsonResponse
from api.idempotency import IdempotencyKey, KeyedRequest
from api.models import EventRead, EventReceipt
from api.paging import Page, PageQuery, Pager
from api.problems import Problem, instance_of
from api.routes.answers import answer_with
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import AgentEventEnvelope, ErrorCode, EventType, Identifier, JsonObject
from stores.events import EventLogFilter, EventStore, LoggedEvent
from stores.ingest import Accepted, Ingest

router = APIRouter(prefix="/v1/events", route_class=AuthenticatedRoute, tags=["events"])

_AMBIGUOUS = "binding_ambiguous"


class EventQuery(PageQuery):
    """Filters of the event log."""

    event_type: EventType | None = None
    source: Identifier | None = None
    bot_id: Identifier | None = None
    conversation_id: Identifier | None = None
    run_id: UUID | None = None


@router.post(
    "",
    operation_id="postEvent",
    status_code=202,
    response_model=EventReceipt,
    responses=problems(409, body=True),
)
async def post_event(
    request: Request,
    envelope: AgentEventEnvelope,
    caller: EventWriter,
    host: Host,
    idempotency_key: IdempotencyKey = None,
) -> JsonResponse:
    """Log an event and start the run that its binding asks for.

    What is answered with 202 is committed. The same event again writes nothing and is answered with its first
    outcome; the same id with other content is a conflict.
    """
    if envelope.workspace_id not in {None, caller.workspace_id}:
        raise Problem(403, ErrorCode.UNAUTHORIZED, "workspace_id: this key belongs to another workspace; leave it out.")
    envelope = envelope.model_copy(update={"workspace_id": caller.workspace_id})
    keyed = KeyedRequest(caller.workspace_id, idempotency_key, "postEvent", envelope.model_dump(mode="json"))

    async def write(connection: AsyncConnection) -> Answer:
        async def act() -> Answer:
            accepted = await Ingest(connection, caller.workspace_id).accept_event(envelope)
            return _answer(accepted, envelope, instance_of(request.scope))

        return await keyed.answer_once(connection, act)

    answer = await host.acceptance.carry_out(write)
    host.metrics.events.labels(str(answer.body.get("disposition", "refused"))).inc()
    return answer_with(answer)


@router.get("", operation_id="listEvents", response_model=Page[EventRead], responses=problems(400))
async def list_events(query: Annotated[EventQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the event log, newest first."""
    pager = Pager(host.cursors, query.list_name("events", caller.workspace_id), int)
    narrowed = EventLogFilter(**query.model_dump(exclude={"limit", "cursor"}))
    async with host.reads.connect() as connection:
        found = await EventStore(connection, caller.workspace_id).list(
            narrowed, before=pager.position(query), limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda event: event.seq))


@router.get("/{event_id:id}", operation_id="getEvent", response_model=EventRead, responses=problems(404))
async def get_event(event_id: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read a row of the event log."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await EventStore(connection, caller.workspace_id).get(event_id)))


def _answer(accepted: Accepted, envelope: AgentEventEnvelope, instance: str) -> Answer:
    if accepted.disposition == _AMBIGUOUS:
        # The event is in the log, so this is an answer and no error that would undo it.
        return Answer(409, _ambiguous(accepted).document(instance))
    body: JsonObject = {"event_id": accepted.event_id, "disposition": accepted.disposition}
    if accepted.is_duplicate:
        body |= {"disposition": "duplicate", "original_disposition": accepted.disposition}
    if accepted.run_id is not None:
        body["run_id"] = str(accepted.run_id)
    if accepted.disposition == "ignored":
        body |= {"reason": "no_binding", "detail": _no_binding(envelope)}
    return Answer(202, body, new_run=accepted.new_run)


def _no_binding(envelope: AgentEventEnvelope) -> str:
    bot = f" from bot {envelope.bot_id!r}" if envelope.bot_id else ""
    return (
        f"No enabled binding takes {envelope.event_type!r}{bot}. "
        "PUT /v1/bindings/{binding_id} makes one; then send the event under a new event_id."
    )


def _ambiguous(accepted: Accepted) -> Problem:
    return Problem(
        409,
        ErrorCode.BINDING_AMBIGUOUS,
        "Several bindings of the same scope and priority match, so the event was logged and no run started. "
        "Give one of them another priority or disable it, then send the event under a new event_id.",
        more={"binding_ids": accepted.outcome["binding_ids"]},
    )


def _read(event: LoggedEvent) -> Document:
    return asdict(event) | {"run_id": event.run_id and str(event.run_id)}
