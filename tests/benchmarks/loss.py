"""How long a run waits for another worker when its own is killed."""

import time

from tests.benchmarks.bare import start_bare
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.stage import Stage

GRACE_SECONDS = 1.0


async def measure(stage: Stage) -> list[Line]:
    """Kill a worker that holds a run and a bare workflow, `stage.effort.kills` times."""
    silence = stage.effort.heartbeat_seconds
    kills = [await _kill(stage, silence) for _ in range(stage.effort.kills)]
    settings = {"kills": len(kills), "heartbeat_timeout_seconds": silence, "statistic": "slowest"}
    # When the last heartbeat was is chance, and the budget is a promise.
    value, baseline = max(run for run, _ in kills), max(bare for _, bare in kills)
    return [Line("loss", value, "s", baseline, Budget(value_at_most=silence + GRACE_SECONDS), settings)]


async def _kill(stage: Stage, silence: float) -> tuple[float, float]:
    """Return the seconds from the kill to the next start of the runner, and of the bare activity."""
    host = stage.host("loss")
    await host.put_clock(runner_config={"hold": True}, heartbeat_timeout_seconds=silence)
    async with stage.both_workers(host, "first") as first:
        run = await host.start_message()
        bare = (await start_bare(stage.client, host.bare_queue, silence)).id
        for key in (run, bare):
            await stage.notes.at("started", key)
        async with stage.both_workers(host, "second"):
            killed_at = time.monotonic()
            first.kill()
            again = [await stage.notes.at("started", key, nth=2) - killed_at for key in (run, bare)]
    await stage.terminate_workflows(host)
    return again[0], again[1]
