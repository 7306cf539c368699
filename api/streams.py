"""Following runs live (DESIGN 7).

One loop reads the new rows of all followed runs, encodes each once, and hands the bytes to everybody who
follows that run. The database decides what a reader gets. A notification only says that it is worth looking,
and a sweep every second looks without being told, so a lost one makes a reader late and never makes it miss a
row.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from api.frames import PING, RETRY, Frames
from api.metrics import Metrics
from stores.availability import is_unavailable
from stores.ledger import LedgerStore, read_document
from stores.notifications import LEDGER_CHANNEL, Listener

SWEEP_SECONDS = 1.0
PING_SECONDS = 15.0
RETRY_SECONDS = 0.5
# Rows of one run in one read, live or replayed.
ROWS_PER_READ = 500
# What a reader may be behind with. Most frames are a few hundred bytes, so the bytes decide.
MAX_WAITING_FRAMES = 10_000
MAX_WAITING_BYTES = 4 * 1024 * 1024

_log = structlog.get_logger(__name__)


class Waiting:
    """The frames that wait for one reader, within bounds.

    Args:
        joined_at: The reader gets what lies behind this sequence; it reads for itself what lies before.
    """

    def __init__(self, joined_at: int) -> None:
        self.joined_at = joined_at
        self.is_closed = False
        self._chunks: deque[Frames] = deque()
        self._count = 0
        self._bytes = 0
        self._quiet_since = time.monotonic()
        self._changed = asyncio.Event()

    def offer(self, frames: Frames) -> bool:
        """Add frames; False where the reader has too much waiting already. One read is always taken."""
        count, size = self._count + len(frames), self._bytes + len(frames.data)
        if self._chunks and (count > MAX_WAITING_FRAMES or size > MAX_WAITING_BYTES):
            return False
        self._chunks.append(frames)
        self._count, self._bytes = count, size
        self._changed.set()
        return True

    def close(self) -> None:
        """End the stream; what waits is dropped, the reader comes back for it."""
        self.is_closed = True
        self._chunks.clear()
        self._changed.set()

    def ping(self, now: float) -> None:
        """Wake the reader when nothing has come for 15 s; ``now`` is monotonic."""
        if now - self._quiet_since >= PING_SECONDS:
            self._quiet_since = now
            self._changed.set()

    async def next(self) -> Frames | None:
        """Return the next frames; None where it is time for a ping, or the stream is closed."""
        if not self._chunks and not self.is_closed:
            self._changed.clear()
            await self._changed.wait()
        if not self._chunks:
            return None
        self._quiet_since = time.monotonic()
        frames = self._chunks.popleft()
        self._count -= len(frames)
        self._bytes -= len(frames.data)
        return frames


class _Feed:
    """A followed run: how far it was read, and for whom."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.readers: set[Waiting] = set()


class StreamHub:
    """Feeds all live readers of this process; an async context manager.

    Args:
        engine: Where rows are read. One connection of it is kept.
        database_url: The same database, for the one connection that listens.
        metrics: Counts readers and rows.
    """

    def __init__(self, engine: AsyncEngine, database_url: str, metrics: Metrics) -> None:
        self._reads = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._metrics = metrics
        self._listener = Listener(database_url, {LEDGER_CHANNEL: self._hear}, self._look_everywhere)
        self._feeds: dict[UUID, _Feed] = {}
        # Runs that may have rows behind their feed's position.
        self._grown: set[UUID] = set()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "StreamHub":
        """Start listening and reading."""
        await self._listener.__aenter__()
        self._task = asyncio.create_task(self._read_until_closed(), name="stream-hub")
        return self

    async def __aexit__(self, *exit_: object) -> None:
        """End all streams and stop."""
        self.end_streams()
        if self._task is not None:
            # Not cancelled: that would break off a query and cost its connection.
            await self._task
        await self._listener.__aexit__(*exit_)

    def end_streams(self) -> None:
        """End all streams, now and from now on: their readers resume elsewhere."""
        self._is_closing = True
        for feed in self._feeds.values():
            for reader in feed.readers:
                reader.close()
        self._wake.set()

    async def listening(self) -> None:
        """Wait until notifications are heard."""
        await self._listener.connected()

    async def follow(self, run_id: UUID, after: int) -> AsyncGenerator[bytes, None]:
        """Yield a run's ledger from behind ``after`` as the bytes of an event stream, until the run has ended.

        First from the database, page by page as fast as the reader takes them. At the head it joins the live
        feed, then reads up to where that stands, so that nothing falls between the two. Ends early where the
        reader is too slow for the feed, or the process shuts down; the reader then resumes.
        """
        yield RETRY
        position, has_ended = after, False
        while frames := await self._page(run_id, position):
            yield frames.data
            position, has_ended = frames.last, frames.is_end
            if len(frames) < ROWS_PER_READ:
                break
        if has_ended:
            return
        with self._joined(run_id, position) as waiting:
            while position < waiting.joined_at and (frames := await self._page(run_id, position, waiting.joined_at)):
                yield frames.data
                position, has_ended = frames.last, frames.is_end
            while not has_ended and not waiting.is_closed:
                frames = await waiting.next()
                if frames is None:
                    if not waiting.is_closed:
                        yield PING
                elif frames.last > position:
                    yield frames.behind(position)
                    position, has_ended = frames.last, frames.is_end

    @contextmanager
    def _joined(self, run_id: UUID, position: int) -> Iterator[Waiting]:
        feed = self._feeds.get(run_id)
        if feed is None:
            feed = self._feeds[run_id] = _Feed(position)
            # What was committed before anybody followed has been announced to nobody.
            self._grown.add(run_id)
            self._wake.set()
        waiting = Waiting(feed.position)
        waiting.is_closed = self._is_closing
        feed.readers.add(waiting)
        self._metrics.readers.inc()
        try:
            yield waiting
        finally:
            self._metrics.readers.dec()
            feed.readers.discard(waiting)
            # A reader that was cut off may leave when the run has been left by all and is followed anew.
            if not feed.readers and self._feeds.get(run_id) is feed:
                del self._feeds[run_id]

    async def _page(self, run_id: UUID, after: int, up_to: int | None = None) -> Frames | None:
        """Read a page of the ledger, also when the reader leaves meanwhile: see `__aexit__`."""
        task = asyncio.ensure_future(self._read_page(run_id, after, up_to))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _read_page(self, run_id: UUID, after: int, up_to: int | None) -> Frames | None:
        before = None if up_to is None else up_to + 1
        async with self._reads.connect() as connection:
            rows = await LedgerStore(connection).rows(run_id, after=after, before=before, limit=ROWS_PER_READ)
        return Frames([read_document(row) for row in rows]) if rows else None

    def _hear(self, payload: str) -> None:
        """Take ``run_id:last`` pairs, separated by spaces, of runs whose ledger has grown."""
        for pair in payload.split():
            run_text, _, last = pair.partition(":")
            run_id = UUID(run_text)
            feed = self._feeds.get(run_id)
            if feed is not None and int(last) > feed.position:
                self._grown.add(run_id)
                self._wake.set()

    def _look_everywhere(self) -> None:
        self._grown.update(self._feeds)
        self._wake.set()

    async def _read_until_closed(self) -> None:
        while not self._is_closing:
            try:
                async with self._reads.connect() as connection:
                    await self._read_with(LedgerStore(connection))
            except Exception as error:  # noqa: BLE001 - the streams of all runs hang on this loop
                if is_unavailable(error):
                    _log.warning("streams.unavailable", error=type(error).__name__)
                else:
                    _log.error("streams.failed", exc_info=error)
                await asyncio.sleep(RETRY_SECONDS)
                self._look_everywhere()

    async def _read_with(self, ledger: LedgerStore) -> None:
        swept_at = time.monotonic()
        while not self._is_closing:
            try:
                async with asyncio.timeout(max(swept_at + SWEEP_SECONDS - time.monotonic(), 0)):
                    await self._wake.wait()
            except TimeoutError:
                swept_at = time.monotonic()
                self._sweep(swept_at)
            self._wake.clear()
            if self._grown:
                await self._read_grown(ledger)

    def _sweep(self, now: float) -> None:
        self._look_everywhere()
        for feed in self._feeds.values():
            for reader in feed.readers:
                reader.ping(now)

    async def _read_grown(self, ledger: LedgerStore) -> None:
        grown, self._grown = self._grown, set()
        positions = {run_id: self._feeds[run_id].position for run_id in grown if run_id in self._feeds}
        if not positions:
            return
        rows = await ledger.tails(positions, limit=ROWS_PER_READ)
        for run_id, group in groupby(rows, key=itemgetter("run_id")):
            self._hand_out(run_id, positions[run_id], Frames([read_document(row) for row in group]))

    def _hand_out(self, run_id: UUID, position: int, frames: Frames) -> None:
        self._metrics.rows.inc(len(frames))
        feed = self._feeds.get(run_id)
        if feed is None or feed.position != position:
            # Left by all during the query, and perhaps followed anew: these rows belong behind another position.
            return
        feed.position = frames.last
        for reader in [reader for reader in feed.readers if not reader.offer(frames)]:
            self._metrics.cut.inc()
            feed.readers.discard(reader)
            reader.close()
        if len(frames) == ROWS_PER_READ:
            self._grown.add(run_id)
            self._wake.set()
