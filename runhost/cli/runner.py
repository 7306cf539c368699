"""`runhost runner`: for the authors of runners. Needs no host, no database and no Temporal."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from runhost.cli.output import EXIT_USAGE, cell, fail, new_table, note, results, write_json

if TYPE_CHECKING:
    from runhost.cli.local_runners import LocalRunner
    from runhost.protocol import JsonObject
    from runners.conformance import Case, Limits, Report
    from runners.conformance.kit import Progress as Told

EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130
STANDARD_OUTPUT: Final = "-"

_STYLES: Final = {"passed": "green", "failed": "red", "not_applicable": "dim"}
_SHOWN: Final = {"passed": "passed", "failed": "failed", "not_applicable": "n/a"}

app = typer.Typer(no_args_is_help=True, help="Write runners: see that one keeps to the protocol.")


@app.callback()
def _group() -> None:
    """Keep `verify` a word of its own although it is the only command."""


@app.command(
    epilog="Exit codes: 0 no case failed, 1 a case failed, 2 wrong usage or no such runner, 130 Ctrl-C.\n\n"
    "Examples:\n\n"
    "runhost runner verify ./greeter --config greeter.yaml\n\n"
    "runhost runner verify plugin:runhost/openai-chat/default --model-endpoint --json report.json"
)
def verify(
    runner: Annotated[
        str | None, typer.Argument(help="Id of a runner that is installed or in RUNHOST_RUNNER_PATHS, or its folder.")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Agent configuration for it, YAML or JSON.")
    ] = None,
    model_endpoint: Annotated[
        bool,
        typer.Option(
            "--model-endpoint",
            help="Start a small OpenAI-compatible endpoint, and set the runner's 'base_url' and 'model' to it.",
        ),
    ] = False,
    case: Annotated[list[str] | None, typer.Option("--case", metavar="ID", help="This case only; repeatable.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Longest time for one run.")] = 30.0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for standard output.")
    ] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases and do nothing.")] = False,
) -> None:
    """Drive a runner through the cases of the protocol, and report what it did.

    The runner gets what its manifest asks for, from a host that answers everything by itself. Nothing is
    stored, and nothing is called but what the runner calls on its own.
    """
    # Here, so that the help of all commands comes without the time that these take to load.
    from runhost.cli.local_runners import find_runner, read_config
    from runhost.cli.logging import configure_logging
    from runners.conformance import Limits, UnknownCase, select

    try:
        cases = select(case or ())
    except UnknownCase as error:
        fail(EXIT_USAGE, str(error))
    if list_cases:
        _print_cases(cases)
        return
    if runner is None:
        fail(EXIT_USAGE, "say which runner: an id such as plugin:author/name/runner, or a folder with a runner.yaml")
    # What the runner does is in the report; what the transports log of it would stand in between.
    configure_logging("error", "console")
    found = find_runner(runner)
    form = [item.get("name") for item in found.descriptor.config_schema]
    if model_endpoint and not ("base_url" in form and "model" in form):
        fail(EXIT_USAGE, f"--model-endpoint: the form of {runner!r} has no 'base_url' and 'model'; leave it out")
    settings = read_config(config)
    try:
        report = asyncio.run(_verify(found, settings, model_endpoint, cases, Limits(run_seconds=timeout)))
    except KeyboardInterrupt:
        note("Stopped; the runner was stopped too.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    _write(report, json_file)
    if not report.is_passed:
        raise typer.Exit(EXIT_FAILED)


async def _verify(
    found: "LocalRunner", config: "JsonObject", with_endpoint: bool, cases: "tuple[Case, ...]", limits: "Limits"
) -> "Report":
    from runners.conformance import MODEL_NAME, Target, model_endpoint, verify

    transport = found.transport()
    with _progress() as told:
        if not with_endpoint:
            target = Target(found.descriptor, transport, found.crosses_process, config)
            return await verify(target, cases, limits=limits, progress=told)
        async with model_endpoint() as endpoint:
            config = {"base_url": endpoint.base_url, "model": MODEL_NAME} | config
            target = Target(found.descriptor, transport, found.crosses_process, config, endpoint)
            return await verify(target, cases, limits=limits, progress=told)


@contextmanager
def _progress() -> "Iterator[Told]":
    """Show which scenario is being played, where a person looks."""
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda scenario, played, count: progress.update(
            task, description=scenario.name, completed=played, total=count
        )


def _print_cases(cases: "tuple[Case, ...]") -> None:
    table = new_table("case", "what the runner does", "rules")
    for case in cases:
        table.add_row(cell(case.id), cell(case.title), cell(", ".join(case.sources)))
    results().print(table)


def _write(report: "Report", json_file: str | None) -> None:
    if json_file == STANDARD_OUTPUT:
        _print_report(report, Console(stderr=True, highlight=False, markup=False))
        write_json(report.document())
        return
    _print_report(report, results())
    if json_file is not None:
        text = json.dumps(report.document(), ensure_ascii=False, indent=2) + "\n"
        try:
            # The escape that stands for a lone surrogate is the one that JSON has for it (D-31).
            Path(json_file).write_bytes(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            fail(EXIT_USAGE, f"--json: {json_file!r} cannot be written: {error.strerror}")


def _print_report(report: "Report", console: Console) -> None:
    table = new_table("case", "result", "seen", "where", title=report.runner_id)
    for case in report.cases:
        outcome = case.outcome.value
        shown = Text(_SHOWN[outcome], style=_STYLES[outcome])
        table.add_row(cell(case.id), shown, cell(case.seen or case.title), cell(case.scenario or ""))
        if case.advice:
            table.add_row("", "", Text(f"→ {case.advice}", style="yellow"), "")
    console.print(table)
    counts = ", ".join(f"{report.counts[outcome]} {_SHOWN[outcome.value]}" for outcome in report.counts)
    console.print(Text(f"{counts}, in {report.seconds:.1f} s", style="bold"))
