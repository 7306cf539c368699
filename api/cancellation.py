"""Passing a cancel on: to the engine, and past it to the workers (DESIGN 9)."""

import asyncio
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from api.problems import Problem
from runhost.protocol import ErrorCode, workflow_id_for
from stores.availability import is_unavailable
from stores.notifications import CONTROL_CHANNEL, notify

_log = structlog.get_logger(__name__)


class Cancellation:
    """Tells who has to know of a cancel.

    Args:
        engine: The database.
        temporal: The engine of runs.
        timeout_seconds: How long it may take to answer.
    """

    def __init__(self, engine: AsyncEngine, temporal: Client, *, timeout_seconds: float) -> None:
        self._engine = engine
        self._temporal = temporal
        self._timeout_seconds = timeout_seconds

    async def tell_engine(self, run_id: UUID) -> None:
        """Ask Temporal to cancel the run's workflow, if there is one; one that is closed ignores it.

        A run that nobody has started yet has none: the request stands in the run, and its first activity
        reads it there.

        Raises:
            Problem: 503, Temporal does not answer.
        """
        handle = self._temporal.get_workflow_handle(workflow_id_for(str(run_id)))
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await handle.cancel()
        # RuntimeError is what the client raises where it cannot connect.
        except (RPCError, RuntimeError, TimeoutError) as error:
            if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
                return
            _log.warning("run.cancel_failed", run_id=str(run_id), error=type(error).__name__)
            raise Problem(
                503,
                ErrorCode.ENGINE_UNAVAILABLE,
                "Temporal cannot be reached, so nothing was cancelled; repeat the request.",
                retryable=True,
                more={"run_id": str(run_id)},
            ) from None

    async def tell_worker(self, run_id: UUID) -> None:
        """Notify the worker that holds the run, since Temporal's own way takes until the next heartbeat."""
        try:
            await notify(self._engine, CONTROL_CHANNEL, f"cancel:{run_id}")
        except Exception as error:
            if not is_unavailable(error):
                raise
            # Temporal has the cancel; only its fast way is closed.
            _log.warning("run.cancel_not_announced", run_id=str(run_id), error=type(error).__name__)
