"""The host API over HTTP, for a runner outside the host's processes: `POST /v1/host/{method}`."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Self, cast
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from runhost.addresses import checked_secret, checked_url, is_loopback
from runhost.protocol import AgentAPIError, AgentAPIException, ErrorCode, JsonObject
from runhost.sdk.api.encoding import encode
from runhost.sdk.api.errors import api_error, malformed_answer
from runhost.sse import EventStreamParser, EventTooLong, StreamEvent

CONNECT_SECONDS: Final = 5.0
CONNECT_PAUSES: Final = (0.1, 0.4, 1.5)
"""Seconds before each further try to connect, as many tries as there are pauses."""

SILENCE_SECONDS: Final = 45.0
"""The host writes into a stream every 15 s at least: three times missed, and the connection is dead."""

# Shorter than servers keep an idle connection: one that closes at the moment of use costs a call.
_KEEPALIVE_SECONDS: Final = 2.0

_OK: Final = 200
_PASSING_STATUSES: Final = frozenset({429, 502, 503, 504})
_MAX_SHOWN_BODY: Final = 500


class HttpConnection:
    """Carries the calls of one attempt of one run; an async context manager, for one event loop.

    It repeats nothing but attempts to connect: once something was sent, nobody knows what became of it. It sets
    no time limit for an answer, since a model may think long; the proxy bounds every call by the run's deadline.

    Args:
        api_url: Address of the API, without `/v1`.
        token: The run token of the attempt.
        run_id: The run.
        plugin_identity: The plugin that the runner belongs to, `author/name`.
        client: Sends the requests, and stays open when the connection is closed; by default one of its own.

    Raises:
        ValueError: The address or the token cannot be one.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        run_id: str,
        plugin_identity: str,
        *,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._url = checked_url(api_url)
        self._headers = {
            "Authorization": f"Bearer {checked_secret(token, 'token')}",
            "Runhost-Run-Id": run_id,
            "Runhost-Plugin-Identity": plugin_identity,
            "Content-Type": "application/json",
            # Compressed events arrive late: a compressor waits until it has something to compress.
            "Accept-Encoding": "identity",
        }
        self._owns_client = client is None
        self._http = client or httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, keepalive_expiry=_KEEPALIVE_SECONDS),
            # Reading the certificates takes 0.1 s.
            verify=self._url.startswith("https:"),
            # A proxy that the environment names is for the world outside this machine.
            trust_env=not is_loopback(self._url),
        )

    async def __aenter__(self) -> Self:
        """Return the connection; it connects with its first call."""
        return self

    async def __aexit__(self, *exit_: object) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Close the HTTP connections, unless they belong to a client that was given."""
        if self._owns_client:
            await self._http.aclose()

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Call a method and wait for its answer.

        Raises:
            AgentAPIException: The host refused or could not be reached, or the answer is none of its own.
        """
        response = await self._send(method, params, "application/json")
        try:
            await response.aread()
        except httpx.TransportError as error:
            raise _lost(method, error) from error
        finally:
            await response.aclose()
        if response.status_code != _OK:
            raise _refusal(method, response)
        return _object(method, response.content)

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject]:
        """Call a method that streams, and yield its events; closing the generator closes the connection.

        Raises:
            AgentAPIException: As in `call`, before the first event or between two.
        """
        response = await self._send(method, params, "text/event-stream")
        try:
            if response.status_code != _OK:
                await response.aread()
                raise _refusal(method, response)
            async with aclosing(_frames(response)) as frames:
                async for frame in frames:
                    if frame.event == "end":
                        return
                    if frame.event == "error":
                        raise _reported(method, frame)
                    if frame.event == "item":
                        yield _object(method, frame.raw)
            raise malformed_answer(method, "the stream stopped before its end")
        except httpx.TransportError as error:
            raise _lost(method, error) from error
        except EventTooLong as error:
            raise malformed_answer(method, str(error)) from None
        finally:
            await response.aclose()

    async def _send(self, method: str, params: JsonObject, accept: str) -> httpx.Response:
        request = self._http.build_request(
            "POST",
            f"{self._url}/v1/host/{quote(method, safe='')}",
            content=encode(params),
            headers=self._headers | {"Accept": accept},
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        )
        for pause in (*CONNECT_PAUSES, None):
            try:
                return await self._http.send(request, stream=True, follow_redirects=False)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if pause is None:
                    message = f"{method}: no host answers at {self._url} ({type(error).__name__}); nothing was sent."
                    raise api_error(ErrorCode.RUNTIME_ERROR, message, retryable=True) from error
                await asyncio.sleep(pause)
            except httpx.TransportError as error:
                raise _lost(method, error) from error
        raise AssertionError("the last pause is None")


async def _frames(response: httpx.Response) -> AsyncGenerator[StreamEvent]:
    parser = EventStreamParser()
    async with aclosing(_pieces(response)) as pieces:
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    piece = await anext(pieces, None)
            except TimeoutError:
                raise httpx.ReadTimeout(f"nothing came for {SILENCE_SECONDS} s") from None
            if piece is None:
                return
            for frame in parser.feed(piece):
                yield frame


async def _pieces(response: httpx.Response) -> AsyncGenerator[bytes]:
    async for piece in response.aiter_bytes():
        yield piece


def _lost(method: str, error: httpx.TransportError) -> AgentAPIException:
    message = f"{method}: the connection was lost ({type(error).__name__}); it may or may not have been carried out."
    return api_error(ErrorCode.RUNTIME_ERROR, message, retryable=True)


def _refusal(method: str, response: httpx.Response) -> AgentAPIException:
    """Read a problem document; anything else is an error without structure (PROTOCOL 10)."""
    try:
        document: object = json.loads(response.content)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and (problem := _problem(cast("JsonObject", document), response)) is not None:
        return AgentAPIException(problem)
    text = response.text.strip()[:_MAX_SHOWN_BODY]
    message = f"{method}: HTTP status {response.status_code} without a problem document{': ' if text else ''}{text}"
    return api_error(ErrorCode.HOST_ACTION_ERROR, message, retryable=response.status_code in _PASSING_STATUSES)


def _problem(document: JsonObject, response: httpx.Response) -> AgentAPIError | None:
    details = document.get("details")
    facts = dict(details) if isinstance(details, dict) else {}
    wait = response.headers.get("Retry-After", "")
    if wait.isascii() and wait.isdecimal():
        facts.setdefault("retry_after_seconds", float(wait))
    fields = {
        "code": document.get("code"),
        "message": document.get("detail") or document.get("title") or f"HTTP status {response.status_code}",
        "retryable": document.get("retryable") is True,
        "details": facts,
    }
    try:
        return AgentAPIError.model_validate(fields)
    except ValidationError:
        return None


def _reported(method: str, frame: StreamEvent) -> AgentAPIException:
    try:
        return AgentAPIException(AgentAPIError.model_validate(_object(method, frame.raw)))
    except ValidationError:
        return malformed_answer(method, "the stream reports an error that is none of the protocol")


def _object(method: str, text: bytes) -> JsonObject:
    try:
        # Not a faster parser: they refuse the lone surrogates that text may hold (D-31).
        document: object = json.loads(text)
    except (ValueError, RecursionError):
        raise malformed_answer(method, "it is not JSON") from None
    if not isinstance(document, dict):
        raise malformed_answer(method, "it is no JSON object")
    return cast("JsonObject", document)
