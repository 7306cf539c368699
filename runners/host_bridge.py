"""The host API as a runner's thread reaches it: calls cross from its event loop to the worker's."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any, Final, TypeVar

from runhost.protocol import AgentAPIError, AgentAPIException, ErrorCode, JsonObject
from runhost.sdk.connection import HostConnection

STREAM_BUFFER: Final = 64
"""Events of a stream that may wait for a slow runner."""

_Answer = TypeVar("_Answer")


class HostBridge:
    """A `HostConnection` for another event loop than the host's.

    Built on the worker's loop, used on the runner's. A call that the runner cancels is cancelled on the worker's
    loop too, and `close` ends those of a runner that is gone.

    Args:
        host: the connection to use on the worker's loop.
    """

    def __init__(self, host: HostConnection) -> None:
        self._host = host
        self._host_loop = asyncio.get_running_loop()
        self._pending: set[Future[Any]] = set()
        self._is_closed = False

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Call on the worker's loop and wait on this one."""
        return await self._cross(self._host.call(method, params))

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Stream on the worker's loop, at most 64 events ahead of this one."""
        stream = _HostStream(self._host, method, params)
        try:
            while (event := await self._cross(stream.take())) is not None:
                yield event
        finally:
            self._send(stream.close())

    def close(self) -> None:
        """Cancel what is still under way and refuse what comes; on the worker's loop."""
        self._is_closed = True
        for future in list(self._pending):
            future.cancel()

    async def _cross(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        future = self._send(work)
        if future is None:
            raise AgentAPIException(
                AgentAPIError(code=ErrorCode.UNAUTHORIZED.value, message="This run has ended; its host API is closed.")
            )
        return await asyncio.wrap_future(future)

    def _send(self, work: Coroutine[Any, Any, _Answer]) -> "Future[_Answer] | None":
        if self._is_closed or self._host_loop.is_closed():
            work.close()
            return None
        future = asyncio.run_coroutine_threadsafe(work, self._host_loop)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future


class _HostStream:
    """One stream on the worker's loop, read by a task of its own: its clean-up must run where it was opened."""

    def __init__(self, host: HostConnection, method: str, params: JsonObject) -> None:
        self._host = host
        self._method = method
        self._params = params
        self._events: asyncio.Queue[JsonObject | Exception | None] = asyncio.Queue(STREAM_BUFFER)
        self._reading: asyncio.Task[None] | None = None

    async def take(self) -> JsonObject | None:
        """Return the next event, None at the end."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        try:
            event = await self._events.get()
        except asyncio.CancelledError:
            await self.close()
            raise
        if isinstance(event, Exception):
            raise event
        return event

    async def close(self) -> None:
        """End the stream in the host."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        try:
            async with aclosing(self._host.stream(self._method, self._params)) as events:
                async for event in events:
                    await self._events.put(event)
        except AgentAPIException as error:
            await self._events.put(error)
        else:
            await self._events.put(None)
