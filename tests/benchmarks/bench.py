"""All measures, and the run of some of them."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping

from tests.benchmarks import cancel, history, host, idle, journal, loss, pages, snapshot, start, stream, throughput
from tests.benchmarks.effort import Effort
from tests.benchmarks.report import Line, shortened
from tests.benchmarks.servers import running_servers
from tests.benchmarks.stage import Stage

Measure = Callable[[Stage], Awaitable[list[Line]]]

MEASURES: Mapping[str, Measure] = {
    "runs": throughput.measure,
    "start": start.measure,
    "history": history.measure,
    "journal": journal.measure,
    "stream": stream.measure,
    "pages": pages.measure,
    "snapshot": snapshot.measure,
    "host": host.measure,
    "cancel": cancel.measure,
    "loss": loss.measure,
    "idle": idle.measure,
}


async def run_bench(
    names: Iterable[str], effort: Effort, *, emit: Callable[[Line, str], None], say: Callable[[str], None]
) -> None:
    """Start the servers, take the measures one after the other, stop the servers.

    Args:
        names: Keys of `MEASURES`.
        effort: How much to do.
        emit: Takes each line as soon as it is there, and its JSON.
        say: Takes news for the person at the terminal.
    """
    say("starting Postgres and Temporal")
    async with running_servers() as servers, Stage.on(servers, effort, say) as stage:
        for name in names:
            say(f"measuring {name}")
            # How busy the machine was with other things before: a bench tells little on one that is.
            load = shortened(os.getloadavg()[0])
            for line in await MEASURES[name](stage):
                emit(line, line.encode({**stage.settings, "load_before": load}))
