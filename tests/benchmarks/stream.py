"""How long a committed delta is on its way to the sockets of its readers."""

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from activities.journal import AttemptJournal
from runhost.protocol import JsonObject
from stores.notifications import LedgerAnnouncer
from tests.benchmarks.echo import Echo
from tests.benchmarks.effort import Effort
from tests.benchmarks.hosts import BenchHost, delta
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import percentile
from tests.benchmarks.stage import ServedApi, Stage

ECHOES = 100


@dataclass(frozen=True)
class Case:
    """So many runs, deltas a second in each, readers of each; budgets in milliseconds by percentile."""

    name: str
    runs: int
    rate: int
    readers: int
    budgets: Mapping[int, float]


def cases(effort: Effort) -> Sequence[Case]:
    """Return those of DESIGN 11: a fast run, many runs, many readers."""
    return (
        Case("stream", runs=1, rate=1_000, readers=1, budgets={50: 5.0, 99: 20.0}),
        Case("stream_many_runs", runs=effort.streamed_runs, rate=10, readers=1, budgets={50: 15.0, 99: 60.0}),
        Case("stream_many_readers", runs=1, rate=200, readers=effort.readers, budgets={99: 60.0}),
    )


class Commits(LedgerAnnouncer):
    """Notes when the commit of each row had returned; the host tells it so anyway."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.announcer_pool)
        self._returned: dict[str, list[tuple[int, float]]] = {}

    def grown(self, run_id: UUID, last_sequence: int) -> None:
        """Note and announce."""
        self._returned.setdefault(str(run_id), []).append((last_sequence, time.monotonic()))
        super().grown(run_id, last_sequence)

    def times(self, run_id: str) -> dict[int, float]:
        """Return when the commit of each sequence returned."""
        times: dict[int, float] = {}
        before = 0
        for last, at in self._returned[run_id]:
            times |= dict.fromkeys(range(before + 1, last + 1), at)
            before = last
        return times


async def measure(stage: Stage) -> list[Line]:
    """Play each case with API, readers and the journals in processes of their own."""
    host = stage.host("stream")
    await host.put_agent(script=[])
    lines: list[Line] = []
    async with stage.api(host) as api, Echo.listening(stage) as echo:
        for case in cases(stage.effort):
            stage.say(f"{case.runs} runs, {case.rate} deltas/s each, {case.readers} readers each")
            echoes = [await echo.milliseconds() for _ in range(ECHOES // 2)]
            delays = await _play(stage, host, api, case)
            echoes += [await echo.milliseconds() for _ in range(ECHOES // 2)]
            lines += _lines(case, delays, echoes)
    return lines


def _lines(case: Case, delays: Sequence[float], echoes: Sequence[float]) -> list[Line]:
    settings: JsonObject = {
        "runs": case.runs,
        "deltas_per_second": case.rate,
        "readers": case.readers,
        "samples": len(delays),
        "baseline_is": "a notification, database to listener",
    }
    return [
        Line(
            f"{case.name}_p{percent}",
            percentile(delays, percent),
            "ms",
            percentile(echoes, percent),
            Budget(value_at_most=milliseconds),
            settings,
        )
        for percent, milliseconds in case.budgets.items()
    ]


async def _play(stage: Stage, host: BenchHost, api: ServedApi, case: Case) -> list[float]:
    """Return the delay of every delta at every reader, in milliseconds."""
    deltas = max(1, int(case.rate * stage.effort.seconds / 3))
    output = stage.servers.directory.path / f"{case.name}.json"
    commits = Commits(stage)
    async with commits:
        journals = dict([await host.open_journal(stage.pool, commits) for _ in range(case.runs)])
        order = {
            "port": api.port,
            "key": api.key,
            "run_ids": list(journals),
            "readers": case.readers,
            # The first row says that the attempt was started.
            "last": deltas + 1,
        }
        async with asyncio.TaskGroup() as both:
            both.create_task(_read(order, output))
            await stage.notes.at("reading", order["run_ids"][0])
            await _write(journals, deltas, case.rate)
    received = json.loads(output.read_text())
    returned = {run_id: commits.times(run_id) for run_id in journals}
    return [
        (at - returned[run_id][sequence]) * 1000
        for run_id, rows in received
        for sequence, at in rows
        if sequence in returned[run_id]
    ]


async def _read(order: JsonObject, output: Path) -> None:
    """Run the readers' process to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.stream_reader", str(output)), stdin=asyncio.subprocess.PIPE
    )
    try:
        await process.communicate(json.dumps(order).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise AssertionError(f"The readers ended with code {process.returncode}.")


async def _write(journals: Mapping[str, AttemptJournal], deltas: int, rate: int) -> None:
    """Give each journal so many deltas, ``rate`` a second, evenly spread over all journals."""
    began, gap = time.monotonic(), 1 / rate / len(journals)
    due = 0.0
    for number in range(deltas):
        for run_id, journal in journals.items():
            due += gap
            ahead = began + due - time.monotonic()
            if ahead > 0:
                await asyncio.sleep(ahead)
            await journal.add(delta(run_id, number))
    for journal in journals.values():
        await journal.close(None)
