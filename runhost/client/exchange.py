"""Requests and answers: headers, retries, problem documents."""

import asyncio
import ipaddress
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar, cast
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from runhost.client.errors import ApiProblem, HostUnreachable, UnexpectedAnswer
from runhost.client.retries import RETRYABLE_STATUSES, RetryPolicy
from runhost.protocol import JsonObject, describe_validation

CONNECT_TIMEOUT_SECONDS: Final = 5.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0
# The host sends a comment every 15 s (API.md): three of them missed, and the connection is dead.
STREAM_TIMEOUT_SECONDS: Final = 45.0

_FIRST_ERROR_STATUS: Final = 400

Answer = TypeVar("Answer", bound=BaseModel)


class Exchange:
    """Talks to one host with one key.

    Args:
        base_url: Address of the API, `http://host:port`, without `/v1`.
        key: The bearer key.
        retry: How patient to be.

    Raises:
        ValueError: The address or the key cannot be one.
    """

    def __init__(self, base_url: str, key: str, retry: RetryPolicy) -> None:
        self.base_url = _checked_url(base_url)
        self.retry = retry
        self._http = httpx.AsyncClient(
            base_url=self.base_url,
            headers={"Authorization": f"Bearer {_checked_key(key)}", "Accept": "application/json"},
            timeout=httpx.Timeout(ANSWER_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
            # Who follows many runs holds many connections, and other calls must not wait for theirs.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            # Reading the certificates takes 0.1 s, and redirects, which could lead to one, are not followed.
            verify=self.base_url.startswith("https:"),
            # A proxy that the environment names is for the world outside this machine.
            trust_env=not _is_loopback(self.base_url),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(
        self,
        kind: type[Answer],
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Make one request and read its answer; tries again where that may help.

        Every request must be safe to repeat: a GET, a PUT, or a POST with an idempotency key, which is the
        same for all tries.

        Raises:
            ApiProblem: The host refused.
            HostUnreachable: Nobody answered.
            UnexpectedAnswer: The answer is not that of this API.
        """
        headers = {} if body is None else {"Content-Type": "application/json"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        request = self._http.build_request(
            method,
            path,
            params=query,
            # Escaped to ASCII, which carries any text there is (D-31).
            content=None if body is None else json.dumps(body).encode(),
            headers=headers,
        )
        response = await self._send(request)
        return read(kind, response)

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncGenerator[httpx.Response]:
        """Open a stream for the length of a block. Makes one try.

        Raises:
            ApiProblem: The host refused.
            UnexpectedAnswer: The answer is neither a stream nor a problem document.
            httpx.TransportError: Nobody answered; raised inside the block too.
        """
        # Compressed, rows would wait in somebody's buffer.
        wanted = {"Accept": "text/event-stream", "Accept-Encoding": "identity", **headers}
        timeout = httpx.Timeout(STREAM_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        async with self._http.stream("GET", path, headers=wanted, timeout=timeout) as response:
            if response.status_code >= _FIRST_ERROR_STATUS:
                await response.aread()
                raise refusal(response)
            yield response

    async def _send(self, request: httpx.Request) -> httpx.Response:
        failures = 0
        while True:
            failures += 1
            try:
                response = await self._http.send(request)
            except httpx.TransportError as error:
                delay = self.retry.delay(failures)
                if failures >= self.retry.max_tries or delay is None:
                    raise self.unreachable(error) from error
            else:
                if response.status_code < _FIRST_ERROR_STATUS:
                    return response
                problem = refusal(response)
                delay = self.retry.delay(failures, retry_after(response))
                if failures >= self.retry.max_tries or delay is None or not is_retryable(problem):
                    raise problem
            await asyncio.sleep(delay)

    def unreachable(self, error: Exception) -> HostUnreachable:
        """Build the error for a host that does not answer."""
        reason = str(error) or type(error).__name__
        return HostUnreachable(f"No answer from {self.base_url}: {reason}. Is the host running there?")


def read(kind: type[Answer], response: httpx.Response) -> Answer:
    """Read the body of an answer.

    Raises:
        UnexpectedAnswer: It is something else.
    """
    try:
        # Not pydantic's own parser, which refuses the lone surrogates that a runner may have sent (D-31).
        return kind.model_validate(json.loads(response.content))
    except ValidationError as error:
        raise _unexpected(response, describe_validation(error)) from None
    except (ValueError, RecursionError):
        raise _unexpected(response, "the body is not JSON") from None


def refusal(response: httpx.Response) -> ApiProblem | UnexpectedAnswer:
    """Build the error for an answer with an error status, whose body has been read."""
    try:
        document: object = json.loads(response.content)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and "code" in document:
        return ApiProblem(response.status_code, cast("JsonObject", document), retry_after(response))
    return _unexpected(response, "the body is no problem document")


def is_retryable(error: Exception) -> bool:
    """Say whether the same request may succeed later."""
    if isinstance(error, ApiProblem):
        return error.retryable or error.status in RETRYABLE_STATUSES
    return isinstance(error, UnexpectedAnswer) and error.status in RETRYABLE_STATUSES


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that the host asks to wait; None where it does not say so in seconds."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdecimal() else None


def segment(identifier: str) -> str:
    """Return an id as one segment of a path, whatever it holds."""
    quoted = quote(identifier, safe="")
    # A segment of dots would be taken as a step through the path.
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _unexpected(response: httpx.Response, reason: str) -> UnexpectedAnswer:
    request = response.request
    return UnexpectedAnswer(
        response.status_code,
        f"{request.method} {request.url} answered with status {response.status_code}, but {reason}. "
        "Is this the address of a runhost API, of a version that fits this client?",
    )


def _checked_url(text: str) -> str:
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise ValueError(f"no valid address: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError(f"{text!r} is no address of an API; write http://host:port")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("the address must not carry a user, a query or a fragment; the key has a place of its own")
    return str(url).rstrip("/")


def _checked_key(key: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        # The value is a secret, so it is not quoted.
        raise ValueError("the key is empty or holds characters that no key has")
    return key


def _is_loopback(url: str) -> bool:
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
