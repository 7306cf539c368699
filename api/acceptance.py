"""Writing what was accepted, and starting its workflow once it is committed (INV-1)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from temporalio.client import Client
from temporalio.service import RPCError

from api.metrics import Metrics
from runhost.protocol import AgentRun, JsonObject
from workflows.start import start_run

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a request that acts is answered with; also what is kept under its idempotency key.

    Attributes:
        body: The document, JSON already.
        is_replayed: It was given before, to an earlier request with the key.
        new_run: A run that this request has written and that is to be started.
    """

    status: int
    body: JsonObject
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_replayed: bool = False
    new_run: AgentRun | None = None


class Acceptance:
    """Carries requests out that write. What has begun is finished, whether or not the client waits for it.

    Args:
        engine: The database.
        temporal: Where run workflows are started.
        task_queue: Their task queue.
        start_timeout_seconds: How long a caller waits for the start; after that, or when it fails, the
            maintenance schedule starts the run.
        metrics: Counts the starts.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        temporal: Client,
        *,
        task_queue: str,
        start_timeout_seconds: float,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._temporal = temporal
        self._task_queue = task_queue
        self._start_timeout_seconds = start_timeout_seconds
        self._metrics = metrics
        self._pending: set[asyncio.Task[Answer]] = set()

    async def carry_out(self, write: Callable[[AsyncConnection], Awaitable[Answer]]) -> Answer:
        """Run ``write`` in a transaction of its own, commit, then start the run it has written.

        Raises:
            Exception: What ``write`` raises; nothing is written then.
        """
        task = asyncio.create_task(self._carry_out(write), name="acceptance")
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for what has begun."""
        await asyncio.gather(*self._pending, return_exceptions=True)

    async def _carry_out(self, write: Callable[[AsyncConnection], Awaitable[Answer]]) -> Answer:
        async with self._engine.begin() as connection:
            answer = await write(connection)
        if answer.new_run is not None:
            await self._start(answer.new_run)
        return answer

    async def _start(self, run: AgentRun) -> None:
        try:
            async with asyncio.timeout(self._start_timeout_seconds):
                await start_run(self._temporal, run, task_queue=self._task_queue)
        # RuntimeError is what the client raises where it cannot connect.
        except (RPCError, RuntimeError, TimeoutError) as error:
            _log.warning("run.start_deferred", run_id=run.run_id, error=type(error).__name__)
            self._metrics.starts.labels("deferred").inc()
        else:
            self._metrics.starts.labels("started").inc()
