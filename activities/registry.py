"""Telling the host which runners this worker offers (HOST 5, D-19)."""

import asyncio
from contextlib import suppress

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from runners.registry import RunnerRegistry
from stores.availability import is_unavailable
from stores.notifications import REGISTRY_CHANNEL, Listener
from stores.runners import RunnerStore

REFRESH_EVERY_SECONDS = 60.0

_log = structlog.get_logger(__name__)


class RegistryAnnouncer:
    """Discovers the runners of one task queue at start, every minute and on a signal, and announces them.

    Workers of one task queue offer the same runners: Temporal gives a run to any of them.
    """

    def __init__(self, engine: AsyncEngine, database_url: str, registry: RunnerRegistry, task_queue: str) -> None:
        self._engine = engine
        self._registry = registry
        self._task_queue = task_queue
        self._asked = asyncio.Event()
        self._listener = Listener(database_url, {REGISTRY_CHANNEL: lambda _: self._asked.set()}, self._asked.set)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "RegistryAnnouncer":
        """Announce once, then keep announcing."""
        await self.announce()
        await self._listener.__aenter__()
        self._task = asyncio.create_task(self._keep_announcing(), name="registry-announcer")
        return self

    async def __aexit__(self, *exit_: object) -> None:
        """Stop. What was announced stays: another worker, or this one after a restart, executes it."""
        await self._listener.__aexit__(*exit_)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def announce(self) -> None:
        """Discover and write the result; a failed discovery keeps what was announced, marked stale."""
        is_fresh = await asyncio.to_thread(self._registry.refresh)
        async with self._engine.begin() as connection:
            store = RunnerStore(connection)
            if is_fresh:
                await store.announce(self._task_queue, self._registry.descriptors())
            else:
                await store.mark_stale(self._task_queue)

    async def _keep_announcing(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), REFRESH_EVERY_SECONDS)
            self._asked.clear()
            try:
                await asyncio.shield(self.announce())
            except Exception as error:
                if not is_unavailable(error):
                    raise
                _log.warning("runners.announce.failed", error=type(error).__name__)
