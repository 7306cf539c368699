"""Who is calling, and what that key may do (API.md)."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends
from fastapi.routing import APIRoute
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.requests import Request
from starlette.responses import Response

from api.problems import Problem
from api.services import services_of
from runhost.protocol import ErrorCode
from stores.keys import ApiKey, KeyStore


class Scope(StrEnum):
    """What a key may be allowed to do. No scope contains another."""

    EVENTS_WRITE = "events:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    RUNS_ADMIN = "runs:admin"
    AGENTS_WRITE = "agents:write"
    AGENTS_INLINE = "agents:inline"
    RUNTIMES_CLAIM = "runtimes:claim"
    SCHEDULES_WRITE = "schedules:write"
    ARTIFACTS_READ = "artifacts:read"
    KEYS_ADMIN = "keys:admin"


@dataclass(frozen=True)
class Caller:
    """The key behind a request. It sees its workspace and nothing else."""

    workspace_id: str
    scopes: frozenset[str]


class AuthenticatedRoute(APIRoute):
    """A route that knows its caller before it reads a body, so that strangers learn nothing about it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Put the check of the key before FastAPI's own handler."""
        handle = super().get_route_handler()

        async def authenticated(request: Request) -> Response:
            request.state.caller = await _authenticate(request)
            return await handle(request)

        return authenticated


async def _authenticate(request: Request) -> Caller:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        key = await _find_key(services_of(request).reads, secret.strip())
        if key is not None:
            return Caller(key.workspace_id, frozenset(key.scopes))
    raise Problem(
        401,
        ErrorCode.UNAUTHORIZED,
        "Send a valid API key: Authorization: Bearer <key>. `runhost keys` makes one.",
        headers={"WWW-Authenticate": 'Bearer realm="runhost"'},
    )


async def _find_key(engine: AsyncEngine, secret: str) -> ApiKey | None:
    """Look a key up.

    It is the first statement of a request, and so finds out whether the pool's connections have outlived the
    server. The error of a dead one empties the pool; the second try and the rest of the request have new ones.
    """
    try:
        async with engine.connect() as connection:
            return await KeyStore(connection).find(secret)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    async with engine.connect() as connection:
        return await KeyStore(connection).find(secret)


def _allowed(scope: Scope) -> Any:
    async def caller(request: Request) -> Caller:
        found: Caller = request.state.caller
        if scope not in found.scopes:
            raise Problem(
                403,
                ErrorCode.UNAUTHORIZED,
                f"This key lacks the scope {scope.value!r}; use one that has it.",
                headers={"WWW-Authenticate": f'Bearer realm="runhost", error="insufficient_scope", scope="{scope}"'},
            )
        return found

    return Depends(caller)


EventWriter = Annotated[Caller, _allowed(Scope.EVENTS_WRITE)]
RunReader = Annotated[Caller, _allowed(Scope.RUNS_READ)]
RunWriter = Annotated[Caller, _allowed(Scope.RUNS_WRITE)]
RunAdmin = Annotated[Caller, _allowed(Scope.RUNS_ADMIN)]
AgentWriter = Annotated[Caller, _allowed(Scope.AGENTS_WRITE)]
ArtifactReader = Annotated[Caller, _allowed(Scope.ARTIFACTS_READ)]
