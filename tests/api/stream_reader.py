"""A client of event streams that keeps everything it is sent."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Received:
    """One frame."""

    id: int
    event: str
    data: dict[str, Any]


class StreamReader:
    """Reads the frames of one response; ``preamble`` and ``comments`` are what came besides."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.retry: str | None = None
        self.comments: list[str] = []
        self._frames = self._read()

    async def _read(self) -> AsyncGenerator[Received, None]:
        fields: dict[str, str] = {}
        async for line in self.response.aiter_lines():
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                name, _, value = line.partition(": ")
                assert name not in fields, "a field came twice in one frame"
                fields[name] = value
            elif "retry" in fields:
                self.retry = fields.pop("retry")
            elif fields:
                yield Received(int(fields["id"]), fields["event"], json.loads(fields["data"]))
                fields = {}

    async def take(self, count: int) -> list[Received]:
        """Return that many frames, fewer where the stream ends before."""
        taken: list[Received] = []
        async for received in self._frames:
            taken.append(received)
            if len(taken) == count:
                break
        return taken

    async def close(self) -> None:
        """Stop reading."""
        await self._frames.aclose()

    async def all(self) -> list[Received]:
        """Return the frames up to the end of the stream."""
        return [received async for received in self._frames]


@asynccontextmanager
async def following(
    client: httpx.AsyncClient, run_id: str, *, last_event_id: int | None = None, **query: Any
) -> AsyncIterator[StreamReader]:
    """Open the stream of a run."""
    headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
    async with client.stream("GET", f"/v1/runs/{run_id}/stream", headers=headers, params=query) as response:
        assert response.status_code == 200, await response.aread()
        reader = StreamReader(response)
        yield reader
        await reader.close()


async def read_some(port: int, bearer: str, run_id: str, *, after: int, count: int) -> list[int]:
    """Open a stream, return at least ``count`` sequences unless it ends before, and hang up.

    Without a client library, which takes longer than the server for a short stream.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        request = f"GET /v1/runs/{run_id}/stream HTTP/1.1\r\nHost: host\r\nAuthorization: {bearer}\r\n"
        writer.write(f"{request}Last-Event-ID: {after}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 204 " in head:
            return []
        assert b" 200 OK" in head, head
        received, ids = b"", list[int]()
        while len(ids) < count:
            size = int(await reader.readline(), 16)
            received += (await reader.readexactly(size + 2))[:size]
            if size == 0:
                break
            whole, _, received = received.rpartition(b"\n\n")
            ids += [int(line[4:]) for line in whole.split(b"\n") if line.startswith(b"id: ")]
        return ids
    finally:
        writer.close()
