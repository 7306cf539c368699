"""What an open run that waits for something costs a worker."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.benchmarks.bare import start_bare
from tests.benchmarks.processes import resident_bytes
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import repeat
from tests.benchmarks.stage import Stage

MAX_KILOBYTES = 150.0
# What a worker loads with its first runs belongs to none of them.
WARM_UP_SHARE = 10
NEVER_LOST_SECONDS = 30.0
STARTS_IN_FLIGHT = 10


async def measure(stage: Stage) -> list[Line]:
    """Compare with bare workflows that wait in an activity, each kind in a worker process of its own."""
    host = stage.host("idle")
    await host.put_clock(runner_config={"hold": True})
    async with stage.worker(host) as worker:
        kilobytes = await _weigh(stage, worker.pid or 0, host.start_message)
    await stage.terminate_workflows(host)

    async def bare() -> str:
        return (await start_bare(stage.client, host.bare_queue, NEVER_LOST_SECONDS)).id

    async with stage.bare_worker(host) as worker:
        bare_kilobytes = await _weigh(stage, worker.pid or 0, bare)
    await stage.terminate_workflows(host)
    settings = {"runs": stage.effort.idle_runs, "max_cached_workflows": 500}
    return [Line("idle", kilobytes, "KB/run", bare_kilobytes, Budget(value_at_most=MAX_KILOBYTES), settings)]


async def _weigh(stage: Stage, pid: int, start: Callable[[], Awaitable[str]]) -> float:
    """Return how many kilobytes the process grows by for each one that is started."""
    await open_and_wait(stage, start, max(1, stage.effort.idle_runs // WARM_UP_SHARE))
    await asyncio.sleep(stage.effort.settle_seconds)
    before = resident_bytes(pid)
    await open_and_wait(stage, start, stage.effort.idle_runs)
    await asyncio.sleep(stage.effort.settle_seconds)
    return (resident_bytes(pid) - before) / stage.effort.idle_runs / 1000


async def open_and_wait(stage: Stage, start: Callable[[], Awaitable[str]], count: int) -> list[str]:
    """Start so many, some at a time, and return their keys once all of them have noted their start."""
    keys: list[str] = []

    async def one() -> None:
        key = await start()
        await stage.notes.at("started", key)
        keys.append(key)

    await repeat(one, count=count, in_flight=STARTS_IN_FLIGHT)
    return keys
