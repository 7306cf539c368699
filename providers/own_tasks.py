"""Work in tasks of its own, so that it is cancelled once at most, however often its caller is.

A call of a runner is cancelled by whoever is first: the deadline, the runner, the end of the run; often by two of them
within microseconds. A second cancel would interrupt the clean-up after the first one, and a connection whose closing
was interrupted stays open for ever: the shields of the HTTP library are those of anyio, which `Task.cancel` ignores.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")


async def in_own_task(work: Coroutine[Any, Any, T]) -> T:
    """Await work. A cancel is passed on to it and its end awaited; a second cancel ends the waiting only."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        # Whatever its end is, somebody has looked at it: nothing is logged as forgotten.
        task.add_done_callback(_look_at)
        await asyncio.wait([task])
        raise


async def steps_in_own_tasks(pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield what a generator yields, each step like `in_own_task`; it is closed when this one is.

    The generator must not mind which task it is continued in: no timeout or task group of its may span a yield.
    """
    end = object()

    async def step() -> T | object:
        return await anext(pieces, end)

    try:
        while (piece := await in_own_task(step())) is not end:
            yield cast("T", piece)
    except GeneratorExit:
        await in_own_task(_close(pieces))
        raise


async def _close(pieces: AsyncGenerator[Any, None]) -> None:
    await pieces.aclose()


def _look_at(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()
