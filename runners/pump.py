"""Moves results from a runner's generator into the hand-off, on the runner's loop."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Coroutine
from time import monotonic
from typing import Any, Final

from runhost.protocol import AgentRunContext
from runhost.sdk import AgentRunner
from runners.errors import InvalidRunner
from runners.handoff import Handoff

TURN_SECONDS: Final = 0.01
"""A runner that yields without ever awaiting lets its loop turn this often, or it would look blocked."""


def start_generator(runner: AgentRunner, context: AgentRunContext, runner_id: str) -> AsyncGenerator[object, None]:
    """Call `run`; nothing of its body is executed yet.

    Raises:
        InvalidRunner: it did not return an asynchronous generator.
    """
    results: object = runner.run(context)
    if inspect.isasyncgen(results):
        return results
    if inspect.iscoroutine(results):
        results.close()
    raise InvalidRunner(
        runner_id,
        "run() must be an async generator (`async def run(self, ctx)` with `yield`), "
        f"not return {type(results).__name__}",
    )


async def pump_results(results: AsyncGenerator[object, None], handoff: Handoff) -> None:
    """Put what the generator yields, until it ends or the hand-off does; then the generator is closed.

    A cancellation reaches the generator wherever it stands: where it awaits, or at its `yield`. It decides whether
    that ends it. What it raises is raised here.
    """
    step: Coroutine[Any, Any, object] = results.__anext__()
    turned = monotonic()
    while True:
        try:
            result = await step
        except StopAsyncIteration:
            return
        may_go_on = handoff.put(result)
        if handoff.ended:
            await results.aclose()
            return
        try:
            if not may_go_on:
                await handoff.room()
            elif monotonic() - turned > TURN_SECONDS:
                await asyncio.sleep(0)
                turned = monotonic()
        except asyncio.CancelledError as cancelled:
            step = results.athrow(cancelled)
        else:
            step = results.__anext__()
