"""How a cancel reaches the worker that holds the run: by notification, within milliseconds (DESIGN 9)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.availability import is_unavailable
from stores.notifications import CONTROL_CHANNEL, Listener
from stores.runs import RunStore

_PREFIX = "cancel:"

_log = structlog.get_logger(__name__)


class CancelBoard:
    """The runs that this worker holds, and whom to tell when one of them is to be cancelled.

    Temporal's own cancel arrives with a heartbeat, seconds later; this is the fast way, and losing it costs
    no more than that delay.
    """

    def __init__(self, engine: AsyncEngine, database_url: str) -> None:
        self._engine = engine
        self._held: dict[UUID, Callable[[], None]] = {}
        self._catching_up: asyncio.Task[None] | None = None
        self._listener = Listener(database_url, {CONTROL_CHANNEL: self._hear}, self._catch_up)

    async def __aenter__(self) -> "CancelBoard":
        """Start listening."""
        await self._listener.__aenter__()
        return self

    async def __aexit__(self, *exit_: object) -> None:
        """Stop listening."""
        await self._listener.__aexit__(*exit_)
        if self._catching_up is not None:
            await asyncio.wait([self._catching_up])

    @contextmanager
    def holding(self, run_id: UUID, tell: Callable[[], None]) -> Iterator[None]:
        """Call ``tell`` when a cancel of this run is heard inside the block. It may be called again."""
        self._held[run_id] = tell
        try:
            yield
        finally:
            # A newer attempt of the same run may have taken the place.
            if self._held.get(run_id) is tell:
                del self._held[run_id]

    def _hear(self, payload: str) -> None:
        if payload.startswith(_PREFIX):
            tell = self._held.get(UUID(payload.removeprefix(_PREFIX)))
            if tell is not None:
                tell()

    def _catch_up(self) -> None:
        """Read once what may have been said while nobody listened."""
        if self._held:
            self._catching_up = asyncio.create_task(self._read_requests())

    async def _read_requests(self) -> None:
        try:
            async with self._engine.connect() as connection:
                requested = await RunStore(connection).cancel_requested_among(list(self._held))
        except Exception as error:
            if not is_unavailable(error):
                raise
            # The listener has lost its connection as well, and catches up again when it is back.
            _log.warning("cancel.catch_up.failed", error=type(error).__name__)
            return
        for run_id in requested:
            self._hear(f"{_PREFIX}{run_id}")
