"""Threads for blocking calls: no more than the limit, none that idles."""

import threading
from collections.abc import Iterator

import pytest

from runners.blocking_calls import BlockingCalls
from tests.eventually import eventually

LIMIT = 2


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def running() -> int:
    return sum(thread.name == "test-blocking" for thread in threading.enumerate())


async def test_calls_beyond_the_limit_wait(release: threading.Event) -> None:
    calls = BlockingCalls("test", LIMIT)
    futures = [calls.submit(release.wait, 10) for _ in range(5)]
    assert (calls.busy, running()) == (LIMIT, LIMIT)
    release.set()
    assert [future.result(10) for future in futures] == [True] * 5
    await eventually(lambda: (calls.busy, running()) == (0, 0))


async def test_cancelled_call_is_not_made(release: threading.Event) -> None:
    calls = BlockingCalls("test", 1)
    blocking = calls.submit(release.wait, 10)
    waiting = calls.submit(pytest.fail, "was called")
    assert waiting.cancel()
    release.set()
    assert blocking.result(10)
    await eventually(lambda: running() == 0)


def test_error_of_a_call_is_handed_over() -> None:
    error = BlockingCalls("test", 1).submit(int, "no number").exception(10)
    assert isinstance(error, ValueError)
