"""Runs: create, list, read, cancel."""

from datetime import UTC, datetime
from typing import Annotated, TypeAlias
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.exceptions import RequestValidationError
from pydantic import AwareDatetime, BeforeValidator, ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from api.acceptance import Answer
from api.announcements import tell_readers
from api.auth import AuthenticatedRoute, Caller, RunReader, RunWriter
from api.encoding import JsonResponse
from api.idempotency import IdempotencyKey, KeyedRequest
from api.models import CancelRequest, RunRequest
from api.paging import Page, PageQuery, Pager
from api.problems import Problem
from api.routes.answers import answer_with
from api.routes.paths import RunId
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import AgentEventEnvelope, AgentRun, ErrorCode, Identifier, JsonObject, RunStatus
from stores.identifiers import new_uuid
from stores.ingest import Ingest
from stores.runs import RunFilter, RunStore

router = APIRouter(prefix="/v1/runs", route_class=AuthenticatedRoute, tags=["runs"])


def _written_out(value: str) -> str:
    """Refuse a bare number, which would be taken for seconds since 1970."""
    if "T" not in value.upper():
        raise ValueError("write a time of RFC 3339, such as 2026-01-02T03:04:05Z")
    return value


_Time: TypeAlias = Annotated[AwareDatetime, BeforeValidator(_written_out)]


class RunQuery(PageQuery):
    """Filters of the list of runs."""

    status: RunStatus | None = None
    agent_id: Identifier | None = None
    runner_id: Identifier | None = None
    conversation_id: Identifier | None = None
    bot_id: Identifier | None = None
    created_after: _Time | None = None
    created_before: _Time | None = None


@router.post(
    "", operation_id="createRun", status_code=201, response_model=AgentRun, responses=problems(404, 409, body=True)
)
async def create_run(
    body: RunRequest, caller: RunWriter, host: Host, idempotency_key: IdempotencyKey = None
) -> JsonResponse:
    """Create a run of an agent, without an event from outside.

    What is answered with 201 is committed; the run starts by itself. Send an `Idempotency-Key`, so that a
    request that has to be repeated creates one run.
    """
    envelope = _envelope(body, caller)
    keyed = KeyedRequest(caller.workspace_id, idempotency_key, "createRun", body.model_dump(mode="json"))

    async def write(connection: AsyncConnection) -> Answer:
        async def act() -> Answer:
            ingest = Ingest(connection, caller.workspace_id)
            accepted = await ingest.accept_run(envelope, body.agent_id, body.metadata)
            run = accepted.new_run
            if run is None:
                raise RuntimeError("A new event id led to no new run.")
            return Answer(201, _read(run), {"Location": f"/v1/runs/{run.run_id}"}, new_run=run)

        return await keyed.answer_once(connection, act)

    return answer_with(await host.acceptance.carry_out(write))


@router.get("", operation_id="listRuns", response_model=Page[AgentRun], responses=problems(400))
async def list_runs(query: Annotated[RunQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the runs, newest first."""
    pager = Pager(host.cursors, query.list_name("runs", caller.workspace_id), str)
    position = pager.position(query)
    async with host.reads.connect() as connection:
        found = await RunStore(connection).list(
            caller.workspace_id,
            RunFilter(**query.model_dump(exclude={"limit", "cursor"})),
            before=None if position is None else UUID(position),
            limit=query.size + 1,
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda run: run.run_id))


@router.get("/{run_id}", operation_id="getRun", response_model=AgentRun, responses=problems(404))
async def get_run(run_id: RunId, caller: RunReader, host: Host) -> JsonResponse:
    """Read a run."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await RunStore(connection).get(caller.workspace_id, run_id)))


@router.post(
    "/{run_id}/cancel",
    operation_id="cancelRun",
    status_code=202,
    response_model=AgentRun,
    responses=problems(404, 409, body=True),
)
async def cancel_run(
    run_id: RunId,
    caller: RunWriter,
    host: Host,
    body: CancelRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> JsonResponse:
    """Ask for the end of a run.

    The run ends soon after, as `cancelled` unless it was faster. Asking again changes nothing.
    """
    reason = body.reason if body else None
    keyed = KeyedRequest(caller.workspace_id, idempotency_key, f"cancelRun {run_id}", {"reason": reason})
    async with host.reads.connect() as connection:
        kept = await keyed.find_answer(connection)
        if kept is not None:
            return answer_with(kept)
        _must_be_open(await RunStore(connection).get(caller.workspace_id, run_id))
    # First the engine, which takes a cancel twice: where it cannot be reached, nothing is written.
    await host.cancellation.tell_engine(run_id)
    # Before the request is written: it is what whoever cancels waits for.
    await host.cancellation.tell_worker(run_id)
    sequence: int | None = None

    async def write(connection: AsyncConnection) -> Answer:
        async def act() -> Answer:
            nonlocal sequence
            runs = RunStore(connection)
            sequence = await runs.request_cancel(run_id, reason)
            return Answer(202, _read(await runs.get(caller.workspace_id, run_id)))

        return await keyed.answer_once(connection, act)

    answer = await host.acceptance.carry_out(write)
    if sequence is not None:
        await tell_readers(host.engine, run_id, sequence)
    return answer_with(answer)


def _must_be_open(run: AgentRun) -> None:
    if run.status.is_terminal:
        raise Problem(
            409,
            ErrorCode.RUN_TERMINAL,
            f"Run {run.run_id!r} has ended as {run.status.value!r}; there is nothing to cancel.",
            more={"run_id": run.run_id},
        )


def _envelope(body: RunRequest, caller: Caller) -> AgentEventEnvelope:
    fields = {name: getattr(body, name) for name in RunRequest.model_fields if name != "agent_id"}
    try:
        return AgentEventEnvelope(
            event_id=str(new_uuid()),
            event_time=int(datetime.now(UTC).timestamp()),
            source="api",
            workspace_id=caller.workspace_id,
            **fields,
        )
    except ValidationError as error:
        # What the request does not check: how much an event may carry.
        raise RequestValidationError([{**entry, "loc": ("body", *entry["loc"])} for entry in error.errors()]) from None


def _read(run: AgentRun) -> JsonObject:
    return run.model_dump(mode="json")
