"""Whole runs per second, from accepted event to settled end."""

from functools import partial

from runhost.protocol import RunStatus
from tests.benchmarks.bare import bare_worker, start_bare
from tests.benchmarks.hosts import BenchHost
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import alternate, median, rate
from tests.benchmarks.stage import Stage

ANSWER = [{"message": "Hello"}, {"completed": "stop"}]
MIN_RATIO = 0.75


async def measure(stage: Stage) -> list[Line]:
    """Compare runs with bare workflows, both started eagerly and worked on in this process."""
    host = stage.host("runs")
    await host.put_agent(script=ANSWER)
    effort = stage.effort
    amount = {"count": effort.runs_per_round, "in_flight": effort.in_flight}
    run = partial(rate, partial(_run, host), **amount)
    bare = partial(rate, partial(_bare, host), **amount)
    async with host.worker(), bare_worker(stage.client, host.bare_queue):
        # The first ones load what all need.
        await alternate(run, bare, seconds=0, at_least=1)
        runs, bares = await alternate(run, bare, seconds=effort.seconds, at_least=effort.rounds)
    settings = {
        "runs_per_round": effort.runs_per_round,
        "in_flight": effort.in_flight,
        "rounds": len(runs),
        "start": "eager, same process",
    }
    budget = Budget(ratio_at_least=MIN_RATIO)
    return [Line("runs", median(runs), "runs/s", median(bares), budget, settings)]


async def _run(host: BenchHost) -> None:
    handle = await host.start(await host.accept_message())
    settled = await handle.result()
    if settled["status"] != RunStatus.COMPLETED:
        raise AssertionError(f"Workflow {handle.id!r} answered {settled!r}.")


async def _bare(host: BenchHost) -> None:
    handle = await start_bare(host.client, host.bare_queue)
    await handle.result()
