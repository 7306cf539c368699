import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import pytest

from runhost.cli.stopping import until_stopped
from tests.eventually import eventually


class Work:
    """Waits until it is cancelled, then cleans up until it is told to hurry."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.started = asyncio.Event()
        self.hurry = asyncio.Event()

    async def run(self) -> int:
        try:
            self.started.set()
            await asyncio.Event().wait()
        finally:
            await self.hurry.wait()
        return 0

    def hear_second(self) -> None:
        self.told.append("second")
        self.hurry.set()

    def until_stopped(self, work: Coroutine[Any, Any, int]) -> asyncio.Task[int]:
        return asyncio.create_task(
            until_stopped(work, on_first=lambda: self.told.append("first"), on_second=self.hear_second)
        )


async def test_work_that_ends_by_itself_gives_its_code() -> None:
    async def work() -> int:
        return 7

    assert await Work().until_stopped(work()) == 7


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_signal_stops_in_order_and_a_second_one_at_once(number: signal.Signals, code: int) -> None:
    work = Work()
    task = work.until_stopped(work.run())
    await work.started.wait()

    signal.raise_signal(number)
    await eventually(lambda: work.told == ["first"])
    assert not task.done()
    signal.raise_signal(number)

    assert await task == code
    assert work.told == ["first", "second"]


async def test_cancellation_from_elsewhere_passes() -> None:
    work = Work()
    task = work.until_stopped(work.run())
    await work.started.wait()

    work.hurry.set()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
