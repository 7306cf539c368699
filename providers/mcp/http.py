"""The HTTP client under a streamable HTTP session.

The session of the `mcp` package ends, with all its calls, when one request fails on the way. This client answers
failures in the server's place, so that only the call that met one fails. It follows no redirect and bounds what a
server may answer.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types.jsonrpc import ErrorData

from providers.mcp.failures import BROKEN_OFF, SESSION_GONE, TOO_LARGE, refused, unreachable

CONNECT_SECONDS: Final = 10.0
GOODBYE_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 12 * 1024 * 1024
"""An answer of 10 MiB and what JSON adds to it."""

MAX_RETRY_AFTER_SECONDS: Final = 86_400.0
HTTP_NOT_FOUND: Final = 404
HTTP_TOO_MANY: Final = 429
FIRST_SERVER_ERROR: Final = 500

_UNAUTHORIZED: Final = frozenset({401, 403, 407})
_SESSION_HEADER: Final = "mcp-session-id"
_LOOPBACK: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class ToolServerClient(httpx2.AsyncClient):
    """Sends what a session sends; a failure becomes an answer that says so."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__(
            headers={"User-Agent": "runhost", **headers, "Accept-Encoding": "identity"},
            # How long an answer may take is for the call to say.
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            follow_redirects=False,
            # Proxies of the environment are for the world outside, and many settings forget to say so.
            mounts=dict.fromkeys(_LOOPBACK),
        )

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request and return its answer, or one of ours."""
        limit = GOODBYE_SECONDS if request.method == "DELETE" else None
        try:
            async with asyncio.timeout(limit):
                response = await super().send(request, **options)
                return await _checked(request, response)
        except TimeoutError:
            return _answer(request, unreachable("it does not answer"))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol) as error:
            # Only its name: the texts of this library quote what was sent.
            return _answer(request, unreachable(type(error).__name__))
        except httpx2.TransportError:
            return _answer(request, BROKEN_OFF)


async def _checked(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return an answer, read whole where it is one document, or one of ours in its place."""
    failure = _failure(request, response)
    if failure is None and not response.headers.get("content-type", "").lower().startswith("application/json"):
        return response
    try:
        body = bytearray()
        if failure is None:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    failure = TOO_LARGE
                    break
    finally:
        await response.aclose()
    if failure is not None:
        return _answer(request, failure)
    return httpx2.Response(response.status_code, headers=response.headers, content=bytes(body), request=request)


@asynccontextmanager
async def http_server(url: str, headers: dict[str, str]) -> AsyncGenerator[Any, None]:
    """Yield the streams of a session with a server; the server is told when the block ends."""
    async with (
        ToolServerClient(headers) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES) as streams,
    ):
        yield streams


def _failure(request: httpx2.Request, response: httpx2.Response) -> ErrorData | None:
    status = response.status_code
    if response.has_redirect_location:
        reason = f"redirects elsewhere (HTTP {status}), which is not followed; check its url"
        return refused(reason, is_retryable=False)
    if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
        return refused("compresses its answers although it is asked not to", is_retryable=False)
    if status == HTTP_NOT_FOUND and _SESSION_HEADER in request.headers:
        return SESSION_GONE
    if status in _UNAUTHORIZED:
        return refused(f"refuses the request (HTTP {status}); check its headers", is_retryable=False)
    if status == HTTP_TOO_MANY or status >= FIRST_SERVER_ERROR:
        return refused(f"answered HTTP {status}", is_retryable=True, retry_after_seconds=_retry_after(response))
    return None


def _answer(request: httpx2.Request, failure: ErrorData) -> httpx2.Response:
    error = failure.model_dump(mode="json", exclude_none=True)
    return httpx2.Response(502, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _retry_after(response: httpx2.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return min(float(value), MAX_RETRY_AFTER_SECONDS) if value.isascii() and value.isdecimal() else None
