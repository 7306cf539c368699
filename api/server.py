"""Serving the application over HTTP."""

import signal
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

GRACEFUL_SHUTDOWN_SECONDS = 10


class ApiServer(uvicorn.Server):
    """Uvicorn, which waits for open responses when it stops, and so would wait for streams without an end."""

    def __init__(self, app: FastAPI, *, host: str, port: int) -> None:
        self._app = app
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            # Logging belongs to the entry point; what is asked for is counted, not logged.
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
        )
        super().__init__(config)

    @property
    def port(self) -> int:
        """The port it listens on, once it has started; the system chooses where 0 was asked for."""
        return self.servers[0].sockets[0].getsockname()[1]

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order; at once when Ctrl-C comes again.

        Uvicorn would raise the signal anew when it is done, and so kill the process in the midst of its own
        clean-up.
        """
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, whose readers resume elsewhere; then stop as usual."""
        self._app.state.services.hub.end_streams()
        await super().shutdown(sockets)
