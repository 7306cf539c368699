"""Results that a program has written and that nobody has read yet."""

import asyncio
from collections import deque

from runners.errors import RunnerError


class Inbox:
    """Bounded queue on one event loop, with one writer and one reader.

    Args:
        max_results: results that may wait before the writer has to.
        max_bytes: length of their lines that may wait; one result may exceed it.
    """

    def __init__(self, max_results: int, max_bytes: int) -> None:
        self._max_results = max_results
        self._max_bytes = max_bytes
        self._is_bounded = True
        self._results: deque[object] = deque()
        self._bytes = 0
        self._ended = False
        self._error: RunnerError | None = None
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def put(self, result: object, size_bytes: int) -> None:
        """Add a result; after the end it is dropped."""
        if self._ended:
            return
        self._results.append(result)
        self._bytes += size_bytes
        self._more.set()
        if self._is_bounded and (len(self._results) >= self._max_results or self._bytes >= self._max_bytes):
            self._room.clear()

    async def room(self) -> None:
        """Wait until there is room for another result."""
        await self._room.wait()

    def lift_bounds(self) -> None:
        """Take everything from now on: what still comes is little, and nobody may be reading."""
        self._is_bounded = False
        self._room.set()

    def end(self, error: RunnerError | None = None) -> None:
        """Let the reader end after what was put, with `error` if given. The first call counts."""
        if not self._ended:
            self._ended, self._error = True, error
        self._more.set()
        self._room.set()

    async def take(self) -> list[object]:
        """Wait for results and take all there are; empty at the end. Cancelling the wait loses nothing.

        Raises:
            RunnerError: the error given to `end`, once everything before it was taken.
        """
        await self._more.wait()
        if self._results:
            batch = list(self._results)
            self._results.clear()
            self._bytes = 0
            self._room.set()
            if not self._ended:
                self._more.clear()
            return batch
        if self._error is not None:
            raise self._error
        return []
