"""Keeps the services of one machine running, for `runhost dev`."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from runhost.embedded import EmbeddedError

MAX_RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
# After a start that failed; a service that died on its own is started again at once.
RETRY_SECONDS = 1.0


class Service(Protocol):
    """Something that runs in a process of its own."""

    @property
    def name(self) -> str:
        """One word for messages."""
        ...

    async def start(self) -> None:
        """Start, and return when it serves. Raises EmbeddedError when it cannot."""
        ...

    async def wait(self) -> int:
        """Wait until it ends; returns its exit code, negative for a signal."""
        ...

    async def stop(self) -> None:
        """Stop it in order, by force in the end; leaves no process."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


class GaveUp(EmbeddedError):
    """A service ended again and again."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} ended more than {MAX_RESTARTS} times within {RESTART_WINDOW_SECONDS:.0f} s; "
            "the logs of the data directory say why."
        )


class Supervisor:
    """Starts services in order, starts again what ends, stops all in the opposite order.

    Args:
        tell: Takes one line of news for the person at the terminal.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._services: list[Service] = []
        self._watchers: list[asyncio.Task[None]] = []

    async def start(self, service: Service) -> None:
        """Start a service and watch over it from then on.

        Raises:
            EmbeddedError: It did not start.
        """
        # Before the start, so that a start which is interrupted is stopped like the others.
        self._services.append(service)
        await service.start()
        self._watchers.append(asyncio.create_task(self._watch(service), name=f"watch-{service.name}"))

    async def watch(self) -> None:
        """Watch until cancelled.

        Raises:
            GaveUp: A service ended more than 5 times within a minute.
        """
        await asyncio.gather(*self._watchers)

    async def stop(self) -> None:
        """Stop all services, the last one started first."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        for service in reversed(self._services):
            try:
                await service.stop()
            except EmbeddedError as error:
                # The others have to be stopped all the same.
                self._tell(str(error))
        self._services.clear()

    def kill(self) -> None:
        """Make a stop that takes too long end at once."""
        for service in self._services:
            service.kill()

    async def _watch(self, service: Service) -> None:
        ends: deque[float] = deque(maxlen=MAX_RESTARTS + 1)
        while True:
            code = await service.wait()
            self._tell(f"{service.name} ended with code {code}; starting it again")
            await self._start_again(service, ends)

    async def _start_again(self, service: Service, ends: deque[float]) -> None:
        while True:
            now = time.monotonic()
            ends.append(now)
            if len(ends) == ends.maxlen and now - ends[0] < RESTART_WINDOW_SECONDS:
                raise GaveUp(service.name)
            try:
                await service.start()
            except EmbeddedError as error:
                self._tell(str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._tell(f"{service.name} is back")
                return
