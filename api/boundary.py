"""The outermost layer: no error leaves as it was raised, no body beyond the limit comes in, all is counted."""

import time
import traceback

import structlog
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.body_limits import BodyLimits
from api.metrics import Metrics
from api.problems import instance_of, problem_for, problem_response

_log = structlog.get_logger(__name__)


class Boundary:
    """ASGI middleware around the whole application.

    Args:
        app: What is inside.
        metrics: Counts requests by method, route and status.
        body_limits: Larger bodies are refused while they come in, whether or not they say their length.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, body_limits: BodyLimits) -> None:
        self._app = app
        self._metrics = metrics
        self._body_limits = body_limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, _limited(scope, receive, self._body_limits.of(scope["path"])), watched)
        except Exception as error:  # noqa: BLE001 - the boundary: raised further, it would be logged with its text
            self._note(scope, error)
            if status == 0:
                response = problem_response(problem_for(error), instance_of(scope))
                await response(scope, receive, watched)
            # After the first byte there is no other answer: the server sees the body unfinished and hangs up.
        finally:
            self._metrics.count_request(scope["method"], _route(scope), status, time.perf_counter() - began)

    def _note(self, scope: Scope, error: Exception) -> None:
        status = problem_for(error).status
        if status == 503:
            _log.warning("api.unavailable", route=_route(scope), error=type(error).__name__)
        elif status == 500:
            _log.error(
                "api.failed",
                route=_route(scope),
                method=scope["method"],
                error=type(error).__name__,
                # The frames without the message, which may quote what a user wrote (INV-9).
                frames=[
                    f"{frame.filename}:{frame.lineno} {frame.name}"
                    for frame in traceback.extract_tb(error.__traceback__)
                ],
            )


def _route(scope: Scope) -> str:
    """Return the template of the route, which holds no ids, for labels."""
    route = scope.get("route")
    return route.path_format if isinstance(route, APIRoute) else "unmatched"


def _limited(scope: Scope, receive: Receive, limit: int) -> Receive:
    declared = Headers(scope=scope).get("content-length", "")
    came = 0

    async def read() -> Message:
        nonlocal came
        if declared.isdecimal() and int(declared) > limit:
            raise _too_large(limit)
        message = await receive()
        came += len(message.get("body", b""))
        if came > limit:
            raise _too_large(limit)
        return message

    return read


def _too_large(limit: int) -> HTTPException:
    # This type, because FastAPI lets it through where it reads a body.
    return HTTPException(413, f"The body exceeds {limit} bytes; send large content as artifacts.")
