"""The run-scoped host API over HTTP, for runners that execute elsewhere (PROTOCOL 9, API.md)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Header
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.encoding import JSON_TYPE, JsonResponse, encode
from api.frames import PING
from api.routes.responses import host_problems
from api.services import HostCalls
from api.stream_response import EventStreamResponse, left
from host_api.errors import HostCallError
from host_api.session import Credentials
from runhost.protocol import JsonObject
from runhost.protocol.host_api import HOST_METHODS, HostMethod

router = APIRouter(prefix="/v1/host", tags=["host"])

PING_SECONDS: Final = 15.0
WAITING_EVENTS: Final = 64
"""Events of a stream that may wait for a slow client before its source is paused."""

_Answer = TypeVar("_Answer")
RunIdHeader = Annotated[str | None, Header(alias="Runhost-Run-Id", description="The run that the token belongs to.")]
IdentityHeader = Annotated[
    str | None, Header(alias="Runhost-Plugin-Identity", description="`author/name` of the runner's plugin.")
]


def _route(name: str, method: HostMethod) -> None:
    """Add the route of one method, with its own schema in the OpenAPI document."""

    async def call(
        request: Request, host: HostCalls, run_id: RunIdHeader = None, plugin_identity: IdentityHeader = None
    ) -> Response:
        credentials, body = _credentials(request, run_id, plugin_identity), await request.body()
        if method.is_stream:
            return await _stream(request, host.stream(credentials, name, body))
        return JsonResponse(await _unless_left(request, host.call(credentials, name, body)))

    router.add_api_route(
        f"/{name}",
        call,
        methods=["POST"],
        operation_id=_operation_id(name),
        summary=name,
        description=(method.params.__doc__ or "").strip(),
        # What FastAPI knows as JSON: with any other class it would describe the answer as a string.
        response_class=Response if method.is_stream else JSONResponse,
        response_model=None if method.is_stream else method.returns,
        responses=host_problems(is_stream=method.is_stream),
    )


@router.post("/{method}", include_in_schema=False)
async def call_unknown(
    method: str,
    request: Request,
    host: HostCalls,
    run_id: RunIdHeader = None,
    plugin_identity: IdentityHeader = None,
) -> JsonResponse:
    """Refuse a method that does not exist; a stranger is not told so much."""
    return JsonResponse(await host.call(_credentials(request, run_id, plugin_identity), method, await request.body()))


def describe_params(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document what each method takes: the gate reads the bodies, so FastAPI does not know."""
    schemas = document["components"]["schemas"]
    for name, method in HOST_METHODS.items():
        schema = method.params.model_json_schema(ref_template="#/components/schemas/{model}")
        for model, definition in schema.pop("$defs", {}).items():
            schemas.setdefault(model, definition)
        schemas[method.params.__name__] = schema
        content = {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{method.params.__name__}"}}}
        # An empty body stands for an object without members.
        body = {"content": content, "required": bool(schema.get("required"))}
        document["paths"][f"{router.prefix}/{name}"]["post"]["requestBody"] = body


def _operation_id(name: str) -> str:
    first, *rest = name.split("_")
    return "host" + "".join(part.capitalize() for part in (first, *rest))


def _credentials(request: Request, run_id: str | None, plugin_identity: str | None) -> Credentials:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return Credentials(token.strip() if scheme.lower() == "bearer" else "", run_id or "", plugin_identity)


async def _unless_left(request: Request, work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """Wait for the answer, and give the call up when the client goes: nobody would read it."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(left(request.receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
        return await working
    finally:
        for task in (working, leaving):
            task.cancel()


async def _stream(request: Request, events: AsyncGenerator[JsonObject, None]) -> EventStreamResponse:
    """Answer with a stream, once it has something to say: a refusal before that is a problem document."""
    first = await _unless_left(request, _next(events))
    return EventStreamResponse(_frames(first, events))


async def _next(events: AsyncGenerator[JsonObject, None]) -> JsonObject | None:
    return await anext(events, None)


async def _frames(first: JsonObject | None, events: AsyncGenerator[JsonObject, None]) -> AsyncGenerator[bytes, None]:
    waiting: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING_EVENTS)
    reading = asyncio.create_task(_read(first, events, waiting.put))
    try:
        while True:
            try:
                async with asyncio.timeout(PING_SECONDS):
                    frame = await waiting.get()
            except TimeoutError:
                yield PING
                continue
            if frame is None:
                return
            yield frame
    finally:
        reading.cancel()
        await asyncio.wait([reading])


async def _read(
    first: JsonObject | None,
    events: AsyncGenerator[JsonObject, None],
    put: Callable[[bytes | None], Awaitable[None]],
) -> None:
    async with aclosing(events):
        try:
            if first is not None:
                await put(_frame("item", first))
                async for event in events:
                    await put(_frame("item", event))
        except HostCallError as error:
            await put(_frame("error", error.as_error().model_dump(mode="json")))
        else:
            await put(_frame("end", {}))
        await put(None)


def _frame(kind: str, document: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode(document))


for _name, _method in HOST_METHODS.items():
    _route(_name, _method)
# Routes are matched in order: the one for unknown methods comes last.
router.routes.append(router.routes.pop(0))
