"""How long an accepted event waits on an idle host until its runner is started."""

import asyncio
import time

from tests.benchmarks.bare import bare_worker, start_bare
from tests.benchmarks.hosts import RUNNERS, BenchHost
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import alternate, median
from tests.benchmarks.stage import Stage

MAX_RATIO = 2.0
# The host is idle again only when everything behind the last run has been written.
PAUSE_SECONDS = 0.1


async def measure(stage: Stage) -> list[Line]:
    """Compare, from the commit of the event on, with the first activity of a bare workflow."""
    host = stage.host("start")
    await host.put_clock()

    async def run() -> float:
        return await _run_milliseconds(stage, host)

    async def bare() -> float:
        return await _bare_milliseconds(stage, host)

    async with host.worker(runner_paths=(RUNNERS,)), bare_worker(stage.client, host.bare_queue):
        await alternate(run, bare, seconds=0, at_least=stage.effort.rounds)
        runs, bares = await alternate(run, bare, seconds=stage.effort.seconds, at_least=stage.effort.rounds)
    settings = {"samples": len(runs), "in_flight": 1, "start": "eager, same process", "statistic": "median"}
    return [Line("start", median(runs), "ms", median(bares), Budget(ratio_at_most=MAX_RATIO), settings)]


async def _run_milliseconds(stage: Stage, host: BenchHost) -> float:
    run = await host.accept_message()
    accepted_at = time.monotonic()
    handle = await host.start(run)
    started_at = await stage.notes.at("started", run.run_id)
    await handle.result()
    await asyncio.sleep(PAUSE_SECONDS)
    return (started_at - accepted_at) * 1000


async def _bare_milliseconds(stage: Stage, host: BenchHost) -> float:
    asked_at = time.monotonic()
    handle = await start_bare(stage.client, host.bare_queue)
    started_at = await stage.notes.at("started", handle.id)
    await handle.result()
    await asyncio.sleep(PAUSE_SECONDS)
    return (started_at - asked_at) * 1000
