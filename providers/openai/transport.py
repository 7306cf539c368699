"""The HTTP side: one request, its answer whole or event by event, and nothing larger than it may be."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, cast

import httpx

from providers.errors import AnswerTooLarge, ProviderError, ProviderTimeout, quote
from providers.models import ModelEndpoint
from providers.openai.answers import broken, error_message, is_retryable
from providers.own_tasks import in_own_task, steps_in_own_tasks
from runhost.sse import EventStreamParser, EventTooLong

CONNECT_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 10 * 1024 * 1024
MAX_EVENT_BYTES: Final = 1024 * 1024
"""One event of a streamed answer holds a few tokens; the longest ones carry whole tool calls."""

MAX_ERROR_BODY_BYTES: Final = 64 * 1024
MAX_CONNECTIONS: Final = 500
MAX_RETRY_AFTER_SECONDS: Final = 86_400.0
HTTP_UNAUTHORIZED: Final = 401
HTTP_FORBIDDEN: Final = 403

_LOOPBACK: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


def build_client() -> httpx.AsyncClient:
    """Return the client for all endpoints of a process; enter it as a context.

    It follows no redirect, so that nothing is sent to where no operator sent it, and keeps no cookie, which it
    would show to whoever's call comes next.
    """
    return httpx.AsyncClient(
        headers={"User-Agent": "runhost", "Content-Type": "application/json"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=100, keepalive_expiry=30),
        follow_redirects=False,
        # Proxies of the environment are for the world outside, and many settings forget to say so.
        mounts=dict.fromkeys(_LOOPBACK),
    )


class EndpointTransport:
    """Sends requests to model endpoints. Nothing is sent twice.

    Cancelling a call, once or more often, or closing a generator closes its connection and so ends the work on the
    other side.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def post(
        self,
        endpoint: ModelEndpoint,
        url: str,
        body: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        timeout_seconds: float | None = None,
    ) -> bytes:
        """Return the body of the answer.

        Raises:
            ProviderError: There is none; `RefusedRequest` where the endpoint says so.
        """
        return await in_own_task(self._post(endpoint, url, body, idempotency_key, timeout_seconds))

    def events(
        self, endpoint: ModelEndpoint, url: str, body: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the data of each event of the answer; an answer in one piece, as JSON, is one event.

        Raises:
            ProviderError: As `post`, or it breaks off.
        """
        return steps_in_own_tasks(self._events(endpoint, url, body, idempotency_key))

    async def _post(
        self,
        endpoint: ModelEndpoint,
        url: str,
        body: Mapping[str, Any],
        idempotency_key: str | None,
        timeout_seconds: float | None,
    ) -> bytes:
        async with self._exchange(endpoint, url, body, idempotency_key, timeout_seconds) as response:
            return await self._read(response, MAX_ANSWER_BYTES)

    async def _events(
        self, endpoint: ModelEndpoint, url: str, body: Mapping[str, Any], idempotency_key: str | None
    ) -> AsyncGenerator[bytes, None]:
        async with self._exchange(endpoint, url, body, idempotency_key, None) as response:
            if _content_type(response) == "application/json":
                yield await self._read(response, MAX_ANSWER_BYTES)
                return
            parser, size = EventStreamParser(max_event_bytes=MAX_EVENT_BYTES), 0
            try:
                async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_bytes())) as pieces:
                    async for piece in pieces:
                        size += len(piece)
                        if size > MAX_ANSWER_BYTES:
                            raise _too_large(MAX_ANSWER_BYTES)
                        for event in parser.feed(piece):
                            yield event.raw
                    for event in parser.finish():
                        yield event.raw
            except EventTooLong:
                raise _too_large(MAX_EVENT_BYTES) from None

    @asynccontextmanager
    async def _exchange(
        self,
        endpoint: ModelEndpoint,
        url: str,
        body: Mapping[str, Any],
        idempotency_key: str | None,
        timeout_seconds: float | None,
    ) -> AsyncGenerator[httpx.Response, None]:
        seconds = timeout_seconds or endpoint.timeout_seconds
        try:
            request = self._client.build_request(
                "POST",
                url,
                content=json.dumps(body),
                headers=_headers(endpoint, idempotency_key),
                timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            )
            response = await self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    raise await self._refusal(response, endpoint)
                yield response
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            raise _timed_out(error, seconds) from None
        except httpx.ConnectError:
            raise ProviderError("The model endpoint cannot be reached; check its base_url.", retryable=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Only its name: the texts of this library quote what was sent.
            is_ours = isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError)
            reason = "cannot be asked; check its base_url and api_key" if is_ours else "broke off its answer"
            raise ProviderError(
                f"The model endpoint {reason} ({type(error).__name__}).", retryable=not is_ours
            ) from None

    async def _read(self, response: httpx.Response, limit: int) -> bytes:
        body = bytearray()
        async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_bytes())) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > limit:
                    raise _too_large(limit)
        return bytes(body)

    async def _refusal(self, response: httpx.Response, endpoint: ModelEndpoint) -> "RefusedRequest":
        status = response.status_code
        if response.is_redirect:
            return RefusedRequest(status, "redirects elsewhere, which is not followed; check its base_url")
        if status in {HTTP_UNAUTHORIZED, HTTP_FORBIDDEN}:
            # The body is not quoted: providers like to repeat parts of the key in it.
            return RefusedRequest(status, "refuses the model's api_key; check the key and its rights")
        body = b""
        with suppress(AnswerTooLarge, httpx.HTTPError):
            # The status says enough without it.
            body = await self._read(response, MAX_ERROR_BODY_BYTES)
        said = quote(_said(body), secrets_of(endpoint))
        return RefusedRequest(status, f"says: {said}" if said else "says nothing more", _retry_after(response))


class RefusedRequest(ProviderError):
    """The endpoint answered with another status than success."""

    def __init__(self, status: int, reason: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(
            f"The model endpoint answered HTTP {status} and {reason}.",
            retryable=is_retryable(status),
            retry_after_seconds=retry_after_seconds,
        )
        self.status = status


def secrets_of(endpoint: ModelEndpoint) -> list[str]:
    """Return what no message may quote."""
    return [endpoint.api_key] if endpoint.api_key else []


def _headers(endpoint: ModelEndpoint, idempotency_key: str | None) -> dict[str, str]:
    headers: dict[str, str] = {}
    if endpoint.api_key:
        if not endpoint.api_key.isascii() or not endpoint.api_key.isprintable():
            raise ProviderError("The model's api_key holds characters that no key has; set it anew.")
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    return headers


def _timed_out(error: httpx.TimeoutException, seconds: float) -> ProviderTimeout:
    if isinstance(error, httpx.ConnectTimeout):
        return ProviderTimeout(f"The model endpoint could not be reached within {min(CONNECT_SECONDS, seconds):g} s.")
    if isinstance(error, httpx.PoolTimeout):
        return ProviderTimeout(f"All {MAX_CONNECTIONS} connections to model endpoints were busy for {seconds:g} s.")
    return ProviderTimeout(f"The model endpoint said nothing for {seconds:g} s, the model's timeout_seconds.")


def _too_large(limit: int) -> AnswerTooLarge:
    return AnswerTooLarge(f"The model endpoint sent more than {limit} bytes at once; ask for fewer tokens.")


def _said(body: bytes) -> str:
    try:
        message = error_message(json.loads(body))
    except (ValueError, RecursionError):
        message = None
    return body.decode("utf-8", errors="replace") if message is None else message


def _content_type(response: httpx.Response) -> str:
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "text/html":
        raise broken("answered with a web page; check its base_url")
    return content_type


def _retry_after(response: httpx.Response) -> float | None:
    """Read ``Retry-After``, seconds or a date, as seconds from now; at most a day."""
    value = response.headers.get("retry-after", "").strip()
    try:
        seconds = float(value) if value[:1].isdigit() else _seconds_until(parsedate_to_datetime(value))
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _seconds_until(moment: datetime) -> float:
    # A date without a zone means UTC in HTTP.
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
