"""The queue between a runner's thread and the worker's loop; its use under load is in `test_in_process`."""

import asyncio

import pytest

from runners.errors import RunnerCrashed
from runners.handoff import Handoff


@pytest.fixture
async def handoff() -> Handoff:
    return Handoff(2, asyncio.get_running_loop())


async def test_put_says_when_the_buffer_is_full(handoff: Handoff) -> None:
    assert handoff.put(1)
    assert not handoff.put(2)
    await handoff.take()
    assert handoff.put(3)


async def test_take_returns_all_there_is(handoff: Handoff) -> None:
    handoff.put(1)
    handoff.put(2)
    assert await handoff.take() == [1, 2]


async def test_take_waits_for_the_first_result(handoff: Handoff) -> None:
    reader = asyncio.create_task(handoff.take())
    await asyncio.sleep(0)
    handoff.put(1)
    assert await reader == [1]


async def test_room_waits_for_the_reader(handoff: Handoff) -> None:
    handoff.put(1)
    handoff.put(2)
    waiting = asyncio.create_task(handoff.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await handoff.take()
    await waiting


async def test_room_ends_with_the_handoff(handoff: Handoff) -> None:
    handoff.put(1)
    handoff.put(2)
    waiting = asyncio.create_task(handoff.room())
    await asyncio.sleep(0)
    handoff.end()
    await waiting


async def test_end_comes_after_the_results(handoff: Handoff) -> None:
    handoff.put(1)
    handoff.end(RunnerCrashed("ValueError", "no"))
    handoff.put(2)
    assert await handoff.take() == [1]
    for _ in range(2):
        with pytest.raises(RunnerCrashed):
            await handoff.take()


async def test_first_end_counts(handoff: Handoff) -> None:
    handoff.end()
    handoff.end(RunnerCrashed("ValueError", "no"))
    assert await handoff.take() == []


async def test_end_wakes_a_waiting_reader(handoff: Handoff) -> None:
    reader = asyncio.create_task(handoff.take())
    await asyncio.sleep(0)
    handoff.end()
    assert await reader == []


async def test_closed_loop_of_the_runner_ends_the_handoff() -> None:
    runner_loop = asyncio.new_event_loop()
    runner_loop.close()
    handoff = Handoff(2, runner_loop)
    handoff.put(1)
    handoff.end()
    assert await handoff.take() == [1]
    assert await handoff.take() == []
