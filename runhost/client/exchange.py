"""Requests and answers: headers, retries, problem documents."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar, cast
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from runhost.client.errors import ApiProblem, HostUnreachable, UnexpectedAnswer
from runhost.client.retries import RETRYABLE_STATUSES, RetryPolicy
from runhost.client.wires import CONNECT_TIMEOUT_SECONDS, Wire
from runhost.protocol import JsonObject, describe_validation

# The host sends a comment every 15 s (API.md): three of them missed, and the connection is dead.
STREAM_TIMEOUT_SECONDS: Final = 45.0

_FIRST_ERROR_STATUS: Final = 400

Answer = TypeVar("Answer", bound=BaseModel)


class Exchange:
    """Talks to one host with one key.

    Args:
        wire: Sends the requests.
        retry: How patient to be.
    """

    def __init__(self, wire: Wire, retry: RetryPolicy) -> None:
        self.wire = wire
        self.retry = retry

    async def close(self) -> None:
        """Close the connections."""
        await self.wire.close()

    async def call(
        self,
        kind: type[Answer],
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        content: bytes | None = None,
        content_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Make one request and read its answer; tries again where that may help.

        Every request must be safe to repeat: a GET, a PUT, or a POST with an idempotency key, which is the
        same for all tries. What is sent is the JSON of ``body``, or ``content`` as it is.

        Raises:
            ApiProblem: The host refused.
            HostUnreachable: Nobody answered.
            UnexpectedAnswer: The answer is not that of this API.
        """
        if body is not None:
            # Escaped to ASCII, which carries any text there is (D-31).
            content, content_type = json.dumps(body).encode(), "application/json"
        headers = {} if content_type is None else {"Content-Type": content_type}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return read(kind, await self.send(method, path, query=query, content=content, headers=headers))

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Make one request as `call` does, and return its answer, whose body has been read.

        Raises:
            ApiProblem: The host refused.
            HostUnreachable: Nobody answered.
            UnexpectedAnswer: It was refused by somebody who does not speak this API.
        """
        return await self._send(
            self.wire.build_request(method, path, params=query, content=content, headers=dict(headers or {}))
        )

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
        request = self.wire.build_request("GET", path, headers=wanted, timeout=timeout)
        response = await self.wire.send(request, stream=True)
        try:
            if response.status_code >= _FIRST_ERROR_STATUS:
                await self.wire.read(response)
                raise refusal(response)
            yield response
        finally:
            await self.wire.end(response)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        failures = 0
        while True:
            failures += 1
            try:
                response = await self.wire.send(request)
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
            await self.wire.sleep(delay)

    def unreachable(self, error: Exception) -> HostUnreachable:
        """Build the error for a host that does not answer."""
        reason = str(error) or type(error).__name__
        return HostUnreachable(f"No answer from {self.wire.base_url}: {reason}. Is the host running there?")


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
