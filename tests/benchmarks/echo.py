"""The baseline of everything that travels by notification."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from stores.notifications import notify
from tests.benchmarks.stage import Stage

CHANNEL = "runhost_bench"


class Echo:
    """Sends notifications and hears them, as host and worker do with a cancel."""

    def __init__(self, stage: Stage) -> None:
        self._engine = stage.engine
        self._heard: dict[str, asyncio.Future[float]] = {}
        self._number = 0

    @classmethod
    @asynccontextmanager
    async def listening(cls, stage: Stage) -> "AsyncIterator[Echo]":
        """Listen inside the block."""
        echo = cls(stage)
        connection = await asyncpg.connect(stage.dsn)
        try:
            await connection.add_listener(CHANNEL, echo._hear)
            yield echo
        finally:
            await connection.close()

    async def milliseconds(self) -> float:
        """Return the time from sending a notification until it is heard."""
        self._number += 1
        payload = str(self._number)
        heard = self._heard[payload] = asyncio.get_running_loop().create_future()
        sent_at = time.monotonic()
        await notify(self._engine, CHANNEL, payload)
        return (await heard - sent_at) * 1000

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._heard.pop(str(payload)).set_result(time.monotonic())
