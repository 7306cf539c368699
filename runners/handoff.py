"""Hand-off of results from a runner's thread to the worker's event loop."""

import asyncio
from collections import deque
from collections.abc import Callable

from runners.errors import RunnerError


class Handoff:
    """Bounded queue between two event loops: one runner puts, one reader takes.

    There is no lock on purpose. A runner's thread can be interrupted between any two instructions, and a lock
    it would die with would stop the worker's loop for all runs. Instead each side first writes what the other
    reads and then looks again: deque operations and attribute writes are atomic under the interpreter lock,
    so one of the two always sees the other.

    The reader is woken once per batch, not once per result, and the runner once per emptied buffer.

    Args:
        capacity: results that may wait before the runner has to pause; may be changed on its loop.
        runner_loop: loop of the runner; the reader's is the running one.
    """

    def __init__(self, capacity: int, runner_loop: asyncio.AbstractEventLoop) -> None:
        self.capacity = capacity
        self.ended = False
        self._items: deque[object] = deque()
        self._error: RunnerError | None = None
        self._runner_loop = runner_loop
        self._reader_loop = asyncio.get_running_loop()
        self._room: asyncio.Future[None] | None = None
        self._runner_waits = False
        self._more: asyncio.Future[None] | None = None
        self._reader_waits = False

    def put(self, result: object) -> bool:
        """Add a result, on the runner's loop; after the end it is dropped.

        Returns:
            Whether the runner may go on; if not, it awaits `room`.
        """
        if self.ended:
            return False
        self._items.append(result)
        self._wake_reader()
        return len(self._items) < self.capacity

    async def room(self) -> None:
        """Wait on the runner's loop until the reader has taken something or the hand-off has ended."""
        self._room = self._runner_loop.create_future()
        self._runner_waits = True
        try:
            if len(self._items) >= self.capacity and not self.ended:
                await self._room
        finally:
            self._runner_waits = False
            self._room = None

    def end(self, error: RunnerError | None = None) -> None:
        """Let the reader end after what was put, with `error` if given. The first call counts; any thread."""
        if not self.ended:
            self._error = error
            self.ended = True
        # Whatever the flags say: an interrupted runner may have cleared one and not come to the call.
        self._notify(self._reader_loop, self._resolve_more)
        self._notify(self._runner_loop, self._resolve_room)

    async def take(self) -> list[object]:
        """Wait on the reader's loop for results and take all there are; empty at the end.

        Raises:
            RunnerError: the error given to `end`, once everything before it was taken.
        """
        while True:
            # `ended` is read before the items: what was put before the end is then sure to be seen.
            ended = self.ended
            if self._items:
                batch = [self._items.popleft() for _ in range(len(self._items))]
                self._wake_runner()
                return batch
            if ended:
                if self._error is not None:
                    raise self._error
                return []
            await self._wait_for_more()

    async def _wait_for_more(self) -> None:
        self._more = self._reader_loop.create_future()
        self._reader_waits = True
        try:
            if not self._items and not self.ended:
                await self._more
        finally:
            self._reader_waits = False
            self._more = None

    def _wake_reader(self) -> None:
        if self._reader_waits:
            self._reader_waits = False
            self._notify(self._reader_loop, self._resolve_more)

    def _wake_runner(self) -> None:
        if self._runner_waits:
            self._runner_waits = False
            self._notify(self._runner_loop, self._resolve_room)

    def _notify(self, loop: asyncio.AbstractEventLoop, resolve: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(resolve)
        except RuntimeError:
            # That loop is closed: nobody is left to hand results to or to take them from.
            self.ended = True

    def _resolve_more(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    def _resolve_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
