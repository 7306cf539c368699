"""How fast a cancel reaches a runner, and what many open runs cost the server meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx

from tests.benchmarks.echo import Echo
from tests.benchmarks.idle import open_and_wait
from tests.benchmarks.processes import cpu_percent
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import percentile
from tests.benchmarks.stage import ServedApi, Stage

MAX_ONE_MILLISECONDS = 50.0
MAX_BURST_MILLISECONDS = 800.0
MAX_CPU_PERCENT = 40.0
BURSTS = 3
PAUSE_SECONDS = 0.1
UNAVAILABLE = 503


async def measure(stage: Stage) -> list[Line]:
    """Cancel over HTTP, one by one and many at once; the baseline is a notification alone."""
    effort, host = stage.effort, stage.host("cancel")
    await host.put_clock(runner_config={"hold": True})
    async with stage.worker(host), stage.api(host) as api, _caller(api) as caller, Echo.listening(stage) as echo:
        # One that says that the worker is there.
        await open_and_wait(stage, host.start_message, 1)
        await asyncio.sleep(effort.settle_seconds)
        almost_empty = await cpu_percent(stage.servers.temporal_pid, effort.rest_seconds)
        stage.say(f"opening {effort.open_runs} runs and those that are cancelled")
        runs = await open_and_wait(stage, host.start_message, effort.open_runs)
        await asyncio.sleep(effort.settle_seconds)
        resting = await cpu_percent(stage.servers.temporal_pid, effort.rest_seconds)
        # More, so that there are never fewer than that while some are cancelled.
        runs += await open_and_wait(stage, host.start_message, effort.cancels * (1 + BURSTS))
        ones, one_echoes = await _one_by_one(stage, caller, echo, _take(runs, effort.cancels))
        many: list[float] = []
        many_echoes: list[float] = []
        for _ in range(BURSTS):
            many_echoes += await asyncio.gather(*(echo.milliseconds() for _ in range(effort.cancels)))
            burst = _take(runs, effort.cancels)
            many += await asyncio.gather(*(_cancel_milliseconds(stage, caller, run) for run in burst))
            await asyncio.sleep(effort.settle_seconds)
    await stage.terminate_workflows(host)
    settings = {
        "open_runs": effort.open_runs,
        "statistic": "p95",
        "baseline_is": "a notification, database to listener",
    }
    return [
        Line(
            "cancel",
            percentile(ones, 95),
            "ms",
            percentile(one_echoes, 95),
            Budget(value_at_most=MAX_ONE_MILLISECONDS),
            {**settings, "samples": len(ones), "at_once": 1, "p50": percentile(ones, 50)},
        ),
        Line(
            "cancel_burst",
            percentile(many, 95),
            "ms",
            percentile(many_echoes, 95),
            Budget(value_at_most=MAX_BURST_MILLISECONDS),
            {**settings, "samples": len(many), "at_once": effort.cancels, "p50": percentile(many, 50)},
        ),
        Line(
            "server_at_rest",
            resting,
            "% of a core",
            almost_empty,
            Budget(value_at_most=MAX_CPU_PERCENT),
            {"open_runs": effort.open_runs, "seconds": effort.rest_seconds, "baseline_is": "one open run"},
        ),
    ]


async def _one_by_one(
    stage: Stage, caller: httpx.AsyncClient, echo: Echo, runs: Sequence[str]
) -> tuple[list[float], list[float]]:
    cancels: list[float] = []
    echoes: list[float] = []
    for run in runs:
        echoes.append(await echo.milliseconds())
        cancels.append(await _cancel_milliseconds(stage, caller, run))
        await asyncio.sleep(PAUSE_SECONDS)
    return cancels, echoes


async def _cancel_milliseconds(stage: Stage, caller: httpx.AsyncClient, run: str) -> float:
    """Return the time from the request until the runner sees its cancellation."""
    asked_at = time.monotonic()
    while (answer := await caller.post(f"/v1/runs/{run}/cancel")).status_code == UNAVAILABLE:
        # What the answer asks for. The time it takes counts.
        continue
    answer.raise_for_status()
    return (await stage.notes.at("told", run) - asked_at) * 1000


def _take(runs: list[str], count: int) -> list[str]:
    taken, runs[:] = runs[:count], runs[count:]
    return taken


@asynccontextmanager
async def _caller(api: ServedApi) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {api.key}"}
    # Shorter than the server keeps them, or a request may meet a connection that is being closed.
    limits = httpx.Limits(max_keepalive_connections=100, keepalive_expiry=2)
    address = f"http://127.0.0.1:{api.port}"
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60, limits=limits) as caller:
        yield caller
