"""Wake-ups between processes, over LISTEN and NOTIFY. They carry ids and numbers, never facts.

No transaction that writes facts notifies: Postgres takes one lock for all notifying transactions and so
would serialise every commit of the database (TEMPORAL 15). A process announces what it committed a few
milliseconds later, in one statement; losing that delays a reader and never makes it miss a row.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.driver import driver_dsn

LEDGER_CHANNEL = "runhost_ledger"
CONTROL_CHANNEL = "runhost_control"
REGISTRY_CHANNEL = "runhost_registry"

ANNOUNCE_EVERY_SECONDS = 0.005
RECONNECT_AFTER_SECONDS = 0.5
# A payload ends at 8,000 bytes; a pair is at most 36 + 1 + 19 + 1 of them.
_PAIRS_PER_PAYLOAD = 130
_NOTIFY = "SELECT pg_notify($1, $2)"

_log = structlog.get_logger(__name__)


async def notify(engine: AsyncEngine, channel: str, payload: str) -> None:
    """Send one notification in a transaction of its own. ``payload`` is at most 7,999 bytes."""
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.exec_driver_sql(_NOTIFY, (channel, payload))


class LedgerAnnouncer:
    """Tells the API processes how far which ledger has grown, at most every 5 ms, for one process that commits."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._grown: dict[UUID, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def grown(self, run_id: UUID, last_sequence: int) -> None:
        """Note a commit. Costs a dictionary entry; never waits."""
        self._grown[run_id] = last_sequence
        self._wake.set()

    async def __aenter__(self) -> "LedgerAnnouncer":
        """Start announcing."""
        self._task = asyncio.create_task(self._announce(), name="ledger-announcer")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Announce what is left and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._send()

    async def _announce(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            # Shielded: a cancelled query leaves its connection in an unknown state (TEMPORAL 15, pitfall 5).
            await asyncio.shield(self._send())
            # The first commit after a pause is told at once; those that follow wait for each other.
            await asyncio.sleep(ANNOUNCE_EVERY_SECONDS)

    async def _send(self) -> None:
        grown, self._grown = self._grown, {}
        pairs = [f"{run_id}:{last}" for run_id, last in grown.items()]
        for start in range(0, len(pairs), _PAIRS_PER_PAYLOAD):
            payload = " ".join(pairs[start : start + _PAIRS_PER_PAYLOAD])
            try:
                await self._pool.execute(_NOTIFY, LEDGER_CHANNEL, payload)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
                # Readers sweep every second, so a lost announcement is late, not lost.
                _log.warning("ledger.announce.failed", error=type(error).__name__)
                return


class Listener:
    """One connection that listens to some channels, and comes back when it is lost.

    Args:
        database_url: The same URL that the engine uses.
        handlers: What to call for each channel with the payload. Must not block.
        on_connect: Called after every (re)connection: whatever was sent in between has been missed, so read
            everything once.
    """

    def __init__(
        self, database_url: str, handlers: dict[str, Callable[[str], None]], on_connect: Callable[[], None]
    ) -> None:
        self._dsn = driver_dsn(database_url)
        self._handlers = handlers
        self._on_connect = on_connect
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    async def __aenter__(self) -> "Listener":
        """Start listening; returns once the first connection stands or has failed."""
        self._task = asyncio.create_task(self._listen(), name="listener")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def connected(self) -> None:
        """Wait until the listener hears."""
        await self._connected.wait()

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
                _log.warning("listener.lost", error=type(error).__name__)
            self._connected.clear()
            await asyncio.sleep(RECONNECT_AFTER_SECONDS)

    async def _listen_once(self) -> None:
        connection = await asyncpg.connect(self._dsn, timeout=5)
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            for channel in self._handlers:
                await connection.add_listener(channel, self._dispatch)
            self._connected.set()
            self._on_connect()
            await lost.wait()
        finally:
            connection.terminate()

    def _dispatch(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        self._handlers[channel](str(payload))
