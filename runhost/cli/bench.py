"""`runhost bench`: measures the host against baselines that are taken in the same run (DESIGN 11)."""

import asyncio
import dataclasses
import gc
import importlib.util
import signal
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from tests.benchmarks.effort import Effort
    from tests.benchmarks.report import Line

# Wrong names, no checkout, or servers that do not start.
EXIT_USAGE = EXIT_CANNOT_START = 2
EXIT_INTERRUPTED = 130

console = Console(stderr=True, highlight=False)


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Which measures; all of them if none is named.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="See that it works; the figures mean nothing.")] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="How long a measure that repeats itself goes on.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Ledger rows that `pages` reads among.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Leave out the table in the end.")] = False,
) -> None:
    """Measure speed, each figure beside a baseline taken on the same servers at the same time.

    Measures: runs, start, history, journal, stream, pages, snapshot, host, cancel, loss, idle. Starts its own
    Postgres and Temporal in a temporary folder and removes them. Standard output gets one line of JSON for each figure:
    name, value, unit, baseline, ratio, budget, ok, settings. A budget that is missed is no error: exit code 0.
    """
    if importlib.util.find_spec("tests") is None or importlib.util.find_spec("tests.benchmarks") is None:
        console.print("The benchmarks are part of the checkout, not of the package: run this in a checkout.")
        raise typer.Exit(EXIT_USAGE)
    # Here, so that the other commands work without the benchmarks and what they need.
    from runhost.cli.logging import configure_logging
    from runhost.embedded import EmbeddedError
    from tests.benchmarks.bench import MEASURES
    from tests.benchmarks.effort import QUICK, Effort

    unknown = [name for name in names or () if name not in MEASURES]
    if unknown:
        console.print(f"No such measure: {', '.join(unknown)}. There are: {', '.join(MEASURES)}.", markup=False)
        raise typer.Exit(EXIT_USAGE)
    configure_logging("error", "console")
    effort = QUICK if quick else Effort()
    chosen = {"seconds": seconds, "rows": rows}
    effort = dataclasses.replace(effort, **{name: value for name, value in chosen.items() if value is not None})
    try:
        lines = asyncio.run(_measure(names or list(MEASURES), effort))
    except asyncio.CancelledError:
        console.print("Stopped; nothing is left behind.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except EmbeddedError as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(EXIT_CANNOT_START) from None
    finally:
        # A Temporal client that is alive when the interpreter ends crashes it now and then (TEMPORAL 13.1).
        gc.collect()
    if not as_json:
        console.print(_table(lines))


async def _measure(names: list[str], effort: "Effort") -> "list[Line]":
    from tests.benchmarks.bench import run_bench

    lines: list[Line] = []

    def emit(line: "Line", encoded: str) -> None:
        lines.append(line)
        typer.echo(encoded)

    def say(news: str) -> None:
        console.print(news, style="dim", markup=False)

    measuring = asyncio.create_task(run_bench(names, effort, emit=emit, say=say))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, measuring.cancel)
    await measuring
    return lines


def _table(lines: "list[Line]") -> Table:
    table = Table("", "value", "baseline", "", "ratio", "budget", "met", box=None, padding=(0, 1))
    for line in lines:
        figures = (_figure(line.value), _figure(line.baseline), line.unit, _figure(line.ratio))
        table.add_row(line.name, *figures, str(line.budget), "yes" if line.is_ok else "no")
    return table


def _figure(number: float) -> str:
    """Write a number with three digits, and no exponent."""
    return f"{float(f'{number:.3g}'):,g}"
