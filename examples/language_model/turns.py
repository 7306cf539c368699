"""One answer at a time, in a thread of its own; the others wait in order of arrival."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

from examples.language_model.engine import Engine, Sampling, Step
from examples.language_model.errors import ApiError

# Half an hour of answers, at a minute each: longer than any client waits.
MAX_OPEN_ANSWERS = 32


class Answer:
    """The steps of one answer as they are made; iterate once.

    `stop()` ends it from any side: a waiting answer never starts, a running one ends with the token it is at.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._steps: asyncio.Queue[Step | None] = asyncio.Queue()
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self.ended = False

    def stop(self) -> None:
        self._stop.set()
        self._steps.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Step]:
        while (step := await self._steps.get()) is not None:
            yield step
        if self._failure is not None:
            raise self._failure

    def make(self, engine: Engine, prompt: list[int], sampling: Sampling) -> None:
        """Generate; runs in the engine's thread."""
        try:
            if not self._stop.is_set():
                for step in engine.generate(prompt, sampling, self._stop):
                    self._loop.call_soon_threadsafe(self._steps.put_nowait, step)
        except RuntimeError as failure:
            self._failure = failure
        finally:
            self.ended = True
            self._loop.call_soon_threadsafe(self._steps.put_nowait, None)


class Turns:
    """Gives the engine to one answer after the other."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")
        self._open: set[Answer] = set()

    def start(self, prompt: list[int], sampling: Sampling) -> Answer:
        """Queue an answer.

        Raises:
            ApiError: 429, too many are waiting.
        """
        self._open = {answer for answer in self._open if not answer.ended}
        if len(self._open) >= MAX_OPEN_ANSWERS:
            raise ApiError(429, "too many requests are waiting; try again later", code="rate_limit_exceeded")
        answer = Answer()
        self._open.add(answer)
        self._thread.submit(answer.make, self.engine, prompt, sampling)
        return answer

    def stop(self) -> None:
        """Cut all answers off where they are."""
        for answer in self._open:
            answer.stop()

    async def close(self) -> None:
        """Stop and wait for the engine to come to rest; nothing can be started any more."""
        self.stop()
        await asyncio.to_thread(self._thread.shutdown)
