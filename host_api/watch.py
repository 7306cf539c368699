"""What ends a call from outside while it lasts: the run's deadline, its end, a revocation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from host_api.errors import HostCallError
from runhost.protocol import ErrorCode
from stores.availability import is_unavailable

RECHECK_SECONDS = 0.5
"""A call that lasts is checked again this often, so that a revocation reaches it within 1 s (D-15)."""


class CallWatch:
    """Bounds the steps of one call.

    Args:
        deadline_at: When the run times out (PROTOCOL P-T1).
        recheck: Checks the call anew; raises `HostCallError` where it would be refused now.
    """

    def __init__(self, deadline_at: datetime | None, recheck: Callable[[], Awaitable[None]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadline: float | None = None
        if deadline_at is not None:
            self._deadline = self._loop.time() + (deadline_at - datetime.now(UTC)).total_seconds()
        self._recheck = recheck
        self._next_check = self._loop.time() + RECHECK_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.Task[None] | None = None
        self._refusal: HostCallError | None = None

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Watch over one wait: a whole call, or one event of a stream.

        Raises:
            HostCallError: `deadline_exceeded`, or what the call is refused with by now.
        """
        if self._loop.time() >= self._next_check:
            await self._check()
        timeout = asyncio.timeout_at(self._deadline)
        try:
            async with timeout:
                self._plan(timeout)
                try:
                    yield
                finally:
                    self._unplan()
        except TimeoutError:
            if self._refusal is not None:
                raise self._refusal from None
            if timeout.expired():
                raise HostCallError(
                    ErrorCode.DEADLINE_EXCEEDED, "The deadline of the run passed before the call had its answer."
                ) from None
            raise

    def _plan(self, timeout: asyncio.Timeout) -> None:
        self._timer = self._loop.call_later(RECHECK_SECONDS, self._look, timeout)

    def _unplan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

    def _look(self, timeout: asyncio.Timeout) -> None:
        self._checking = self._loop.create_task(self._check_beside(timeout))

    async def _check_beside(self, step: asyncio.Timeout) -> None:
        try:
            await self._check()
        except HostCallError as refusal:
            self._refusal = refusal
            step.reschedule(self._loop.time())
        except Exception as error:
            # A database that is away refuses nothing; the next look asks again.
            if not is_unavailable(error):
                raise
            self._plan(step)
        else:
            self._plan(step)

    async def _check(self) -> None:
        await self._recheck()
        self._next_check = self._loop.time() + RECHECK_SECONDS
