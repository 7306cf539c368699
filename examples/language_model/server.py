"""The server's start and end around the app."""

import json
import os
import socket

import uvicorn

from examples.language_model.app import create_app
from examples.language_model.turns import Turns

# Connections whose clients do not take the end of their answer are cut off after this.
SHUTDOWN_SECONDS = 2


class Server(uvicorn.Server):
    """Serves one engine on a socket that is bound already, and tells where once it takes requests."""

    def __init__(self, turns: Turns) -> None:
        config = uvicorn.Config(
            create_app(turns),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            lifespan="on",
        )
        super().__init__(config)
        self._turns = turns

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            model = self._turns.engine.name
            ready = {"base_url": f"http://{host}:{port}/v1", "model": model, "pid": os.getpid()}
            print(json.dumps(ready), flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # First, or the server would wait for answers that may take a minute.
        self._turns.stop()
        await super().shutdown(sockets)
