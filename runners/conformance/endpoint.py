"""A model endpoint that speaks the OpenAI chat interface on the loopback, for runners that call one themselves."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from runhost.protocol import ErrorCode
from runners.conformance.scenario import PLAIN, HostManner, Scenario
from runners.conformance.speech import USAGE, pieces_of, reply_to

MODEL_NAME: Final = "conformance-model"
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 64 * 1024 * 1024

_STATUSES: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNAUTHORIZED: 403,
    ErrorCode.DEADLINE_EXCEEDED: 504,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.RUNTIME_ERROR: 500,
}


class ModelEndpoint:
    """Answers `POST /v1/chat/completions` in the manner of the scenario that is being played.

    Attributes:
        calls: Requests since the last scenario began.
    """

    def __init__(self, port: int) -> None:
        self.calls = 0
        self._port = port
        self._scenario = PLAIN
        self._called: Callable[[], None] = lambda: None

    @property
    def base_url(self) -> str:
        """Address below which `/chat/completions` lies."""
        return f"http://127.0.0.1:{self._port}/v1"

    def play(self, scenario: Scenario, called: Callable[[], None]) -> None:
        """Meet requests in the manner of `scenario` from now on, telling `called` of each."""
        self.calls, self._scenario, self._called = 0, scenario, called

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        try:
            path, body = await _read_request(reader)
            self.calls += 1
            self._called()
            await self._answer(path, body, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            # The runner went away, as it does when it is cancelled, or sent no HTTP.
            return
        finally:
            writer.close()

    async def _answer(
        self, path: str, body: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if path != "/v1/chat/completions":
            return await _send_json(writer, 404, {"error": {"message": "there is only /v1/chat/completions here"}})
        manner = self._scenario.host
        if manner is HostManner.REFUSES:
            refusal = {"error": {"message": "The conformance kit refuses every request in this scenario."}}
            return await _send_json(writer, _STATUSES[self._scenario.refusal], refusal)
        if manner is HostManner.HANGS:
            # Until the runner goes away.
            await reader.read()
            return None
        reply = reply_to(_last_user_text(body), manner)
        usage = None if manner is HostManner.ANSWERS_WITHOUT_USAGE else USAGE.model_dump(exclude_none=True)
        if body.get("stream"):
            return await _send_stream(writer, reply, usage)
        message = {"role": "assistant", "content": reply}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return await _send_json(writer, 200, {"choices": [choice], **({"usage": usage} if usage else {})})


@asynccontextmanager
async def model_endpoint() -> AsyncIterator[ModelEndpoint]:
    """Serve on a free port of the loopback inside the block."""
    connections: set[asyncio.Task[None]] = set()
    serving: list[ModelEndpoint] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        connections.add(task)
        try:
            # A server that is closed cancels nothing: what hangs would outlive it.
            with suppress(asyncio.CancelledError):
                await serving[0].serve(reader, writer)
        finally:
            connections.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
    serving.append(ModelEndpoint(server.sockets[0].getsockname()[1]))
    try:
        yield serving[0]
    finally:
        server.close()
        for connection in list(connections):
            connection.cancel()
        await server.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, Mapping[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if length > MAX_BODY_BYTES:
        raise ValueError
    _, path, _ = first.split(" ")
    body: object = json.loads(await reader.readexactly(length) or b"{}")
    return path, body if isinstance(body, dict) else {}


def _last_user_text(body: Mapping[str, Any]) -> str:
    messages = body.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            return content if isinstance(content, str) else json.dumps(content)
    return ""


async def _send_stream(writer: asyncio.StreamWriter, reply: str, usage: Mapping[str, Any] | None) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for piece in pieces_of(reply):
        await _send_event(writer, {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    await _send_event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage is not None:
        await _send_event(writer, {"choices": [], "usage": usage})
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()


async def _send_event(writer: asyncio.StreamWriter, data: Mapping[str, Any]) -> None:
    writer.write(b"data: " + json.dumps(data).encode() + b"\n\n")
    await writer.drain()


async def _send_json(writer: asyncio.StreamWriter, status: int, document: Mapping[str, Any]) -> None:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status} Conformance\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()
