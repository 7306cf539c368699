"""The HTTP side: one request to a chat endpoint, its answer as it arrives."""

import asyncio
import functools
import ipaddress
import json
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final, cast

import httpx

from runhost.protocol import RunFailureCode
from runhost.sse import EventStreamParser, EventTooLong
from runners.official.openai_chat.answer import Answer
from runners.official.openai_chat.config import ChatConfig
from runners.official.openai_chat.failures import ChatFailure, broken_answer, refused_request, timed_out

CONNECT_SECONDS: Final = 10.0
MAX_EVENT_BYTES: Final = 1024 * 1024
"""One event of a chat answer holds a few tokens; the longest ones carry whole tool calls."""

MAX_WHOLE_ANSWER_BYTES: Final = 2 * 1024 * 1024
MAX_ERROR_BODY_BYTES: Final = 64 * 1024
ERROR_BODY_SECONDS: Final = 5.0


class ChatRequest:
    """One request, ready to be sent; build it on the loop that sends it.

    Args:
        config: where to and how.
        key: key to show, "" for none.
        messages: the conversation, as the endpoint takes it.
        deadline_at: epoch seconds at which the run ends, None for never (P-T1).
    """

    def __init__(self, config: ChatConfig, key: str, messages: list[dict[str, str]], deadline_at: float | None) -> None:
        self._config = config
        self._key = key
        self._messages = messages
        remaining = float("inf") if deadline_at is None else max(0.0, deadline_at - time.time())
        self._seconds = min(config.timeout, remaining)
        self._deadline = asyncio.get_running_loop().time() + self._seconds

    async def stream(self, answer: Answer) -> AsyncGenerator[str]:
        """Send it, once, and yield the text of the answer piece by piece.

        Closing the generator, or cancelling whoever waits for it, closes the connection and so ends the
        model's work. An answer that comes in one piece, as JSON, yields nothing; its text is in `answer`.

        Args:
            answer: filled as the answer arrives; whole when the generator ends.

        Raises:
            ChatFailure: it does not become whole.
        """
        async with (
            self._client() as client,
            aclosing(await self._send(client)) as response,
            aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as pieces,
        ):
            await self._check(response, pieces)
            if "json" in _content_type(response):
                answer.add_whole(await self._read_whole(pieces))
                return
            async with aclosing(self._texts(pieces, answer)) as texts:
                async for text in texts:
                    yield text
        if not answer.is_whole:
            raise broken_answer("it ended before the model said that it was done")

    def _client(self) -> httpx.AsyncClient:
        headers = {"Accept": "text/event-stream, application/json", "User-Agent": "runhost"}
        # Compressed events arrive late: a compressor waits until it has something to compress.
        headers |= {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return httpx.AsyncClient(
            headers=headers,
            # One limit for everything, kept at each wait, and a shorter one for what can fail quickly.
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            verify=_tls_context(),
            # Proxies of the environment are for the world outside, and many settings forget to say so.
            trust_env=not _is_loopback(httpx.URL(self._config.base_url).host),
        )

    async def _send(self, client: httpx.AsyncClient) -> httpx.Response:
        body: dict[str, Any] = {"model": self._config.model, "messages": self._messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        if self._config.temperature is not None:
            body["temperature"] = self._config.temperature
        if self._config.max_tokens is not None:
            body["max_tokens"] = self._config.max_tokens
        url = f"{self._config.base_url}/chat/completions"
        request = client.build_request("POST", url, content=json.dumps(body))
        try:
            async with asyncio.timeout_at(self._deadline):
                return await client.send(request, stream=True)
        except TimeoutError:
            raise timed_out(self._seconds) from None
        except httpx.ConnectTimeout:
            raise timed_out(CONNECT_SECONDS) from None
        except httpx.HTTPError as error:
            # Only its name: the texts of this library quote what was sent.
            reason = f"the model endpoint cannot be reached ({type(error).__name__}); check 'base_url'"
            raise ChatFailure(RunFailureCode.RUNNER_ERROR, reason, retryable=True) from None

    async def _check(self, response: httpx.Response, pieces: AsyncGenerator[bytes]) -> None:
        if not response.is_success:
            body = await self._read_error(pieces)
            raise refused_request(response.status_code, body, key_name=self._config.api_key_env, secret=self._key)
        if _content_type(response) == "text/html":
            reason = "the model endpoint answered with a web page; check 'base_url'"
            raise ChatFailure(RunFailureCode.RUNNER_ERROR, reason)

    async def _texts(self, pieces: AsyncGenerator[bytes], answer: Answer) -> AsyncGenerator[str]:
        try:
            async with aclosing(self._events(pieces)) as events:
                async for data in events:
                    if text := answer.add(data):
                        yield text
                    if answer.ended:
                        return
        except ChatFailure:
            # Once the model has said that it is done, all that can be lost is its usage.
            if not answer.is_whole:
                raise

    async def _events(self, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        parser = EventStreamParser(max_event_bytes=MAX_EVENT_BYTES)
        try:
            while (piece := await self._next(pieces)) is not None:
                for event in parser.feed(piece):
                    yield event.raw
            # Some endpoints forget the empty line after their last event.
            for event in parser.finish():
                yield event.raw
        except EventTooLong:
            raise broken_answer("the model endpoint sent an event over 1 MiB") from None

    async def _read_whole(self, pieces: AsyncGenerator[bytes]) -> bytes:
        body = bytearray()
        while (piece := await self._next(pieces)) is not None:
            body += piece
            if len(body) > MAX_WHOLE_ANSWER_BYTES:
                raise broken_answer(f"the model endpoint sent over {MAX_WHOLE_ANSWER_BYTES} bytes in one piece")
        return bytes(body)

    async def _read_error(self, pieces: AsyncGenerator[bytes]) -> bytes:
        """Read the beginning of an error's body, as far as it comes; the status says enough without it."""
        body = bytearray()
        self._deadline = min(self._deadline, asyncio.get_running_loop().time() + ERROR_BODY_SECONDS)
        with suppress(ChatFailure):
            while len(body) < MAX_ERROR_BODY_BYTES and (piece := await self._next(pieces)) is not None:
                body += piece
        return bytes(body[:MAX_ERROR_BODY_BYTES])

    async def _next(self, pieces: AsyncGenerator[bytes]) -> bytes | None:
        """Wait for the next bytes, None at the end."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await anext(pieces, None)
        except TimeoutError:
            raise timed_out(self._seconds) from None
        except httpx.HTTPError as error:
            raise broken_answer(f"the connection was lost ({type(error).__name__})") from None


def _content_type(response: httpx.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """Return one context for all requests: reading the certificates takes 15 ms, too long for every run."""
    return httpx.create_ssl_context()
