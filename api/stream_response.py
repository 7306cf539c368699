"""The answer that an event stream is."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

# A client that takes nothing for so long is gone, whatever its connection says.
STALLED_AFTER_SECONDS = 20.0


class EventStreamResponse(Response):
    """Sends the bytes of ``stream`` as they come, and stops with the client.

    Starlette's own streaming response finds out only when it sends that nobody is there; a stream that
    waits for a silent run must end at once. Libraries for this kind of answer change signal handlers and
    keep state for the whole process, which two servers in one process would share.
    """

    media_type = "text/event-stream"

    def __init__(self, stream: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream = stream
        # Since when a client has been given something that it has not taken.
        self._sending_since: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the stream ends or the client leaves."""
        sending = asyncio.create_task(self._send(send), name="stream-send")
        leaving = asyncio.create_task(left(receive), name="stream-leave")
        done: set[asyncio.Task[None]] = set()
        try:
            while not done and not self._is_stalled():
                done, _ = await asyncio.wait(
                    (sending, leaving), timeout=STALLED_AFTER_SECONDS / 2, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        if not sending.cancelled():
            sending.result()

    def _is_stalled(self) -> bool:
        since = self._sending_since
        return since is not None and time.monotonic() - since > STALLED_AFTER_SECONDS

    async def _send(self, send: Send) -> None:
        async with aclosing(self._stream) as stream:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for data in stream:
                self._sending_since = time.monotonic()
                await send({"type": "http.response.body", "body": data, "more_body": True})
                self._sending_since = None
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def left(receive: Receive) -> None:
    """Wait until the client of a request, whose body was read, has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
