"""Moments noted where they happen, in whatever process, on the one clock that all processes of a machine share.

The bench listens on a Unix socket; runners and activities write a line to it. The time is taken before the line
is written, so it does not matter how long the line is on its way.
"""

import asyncio
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

ADDRESS = "RUNHOST_BENCH_NOTES"
"""Environment variable with the path of the socket."""

_connections: dict[str, socket.socket] = {}
_writing = threading.Lock()


def note(kind: str, key: str) -> None:
    """Note that ``kind`` happened to ``key`` now. Neither may hold a space."""
    line = f"{kind} {key} {time.monotonic()!r}\n".encode()
    with _writing:
        path = os.environ[ADDRESS]
        connection = _connections.get(path)
        if connection is None:
            connection = _connections[path] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(path)
        connection.sendall(line)


class Notes:
    """Collects the notes of this bench and its children; an async context manager.

    Entering sets the environment variable for this process and those that it starts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._waiting: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._server: asyncio.Server | None = None
        self._transports: set[asyncio.BaseTransport] = set()

    async def __aenter__(self) -> "Notes":
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Writer(self._add, self._transports), self._path)
        os.environ[ADDRESS] = str(self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        del os.environ[ADDRESS]
        if self._server is not None:
            self._server.close()
        for transport in self._transports:
            transport.close()
        own = _connections.pop(str(self._path), None)
        if own is not None:
            own.close()

    async def at(self, kind: str, key: str, *, nth: int = 1, within_seconds: float = 60.0) -> float:
        """Return the monotonic second of the ``nth`` time that ``kind`` happened to ``key``; one may wait for it.

        Raises:
            TimeoutError: It did not happen.
        """
        times = self._times[kind, key]
        async with asyncio.timeout(within_seconds):
            while len(times) < nth:
                self._waiting[kind, key] = asyncio.get_running_loop().create_future()
                await self._waiting[kind, key]
        return times[nth - 1]

    def _add(self, line: bytes) -> None:
        kind, key, at = line.decode().split()
        self._times[kind, key].append(float(at))
        waiting = self._waiting.pop((kind, key), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


class _Writer(asyncio.Protocol):
    """A process that writes notes."""

    def __init__(self, add: Callable[[bytes], None], open_ones: set[asyncio.BaseTransport]) -> None:
        self._add = add
        self._open_ones = open_ones
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._open_ones.add(transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._add(line)
