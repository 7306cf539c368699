"""The command line: the entry points of all processes, and a client for people.

The only place that reads settings and builds engines and clients (DESIGN 3).
"""

import typer

from runhost.cli import (
    agents,
    api,
    bench,
    bindings,
    demo,
    dev,
    events,
    files,
    host,
    keys,
    knowledge,
    migrate,
    models,
    output,
    runner,
    runners,
    runs,
    skills,
    tools,
    worker,
)

_PROCESSES = "Processes"
_CLIENT = "Talk to a host"

main = typer.Typer(
    no_args_is_help=True,
    help="A durable agent host: one event becomes one durable run that anyone can follow.",
    # Tracebacks with the values of variables would show secrets.
    pretty_exceptions_show_locals=False,
    add_completion=False,
    callback=output.prepare_streams,
)
main.command(rich_help_panel=_PROCESSES)(dev.dev)
main.command(rich_help_panel=_PROCESSES)(demo.demo)
main.command(rich_help_panel=_PROCESSES)(api.api)
main.command(rich_help_panel=_PROCESSES)(worker.worker)
main.command(rich_help_panel=_PROCESSES)(bench.bench)
main.add_typer(migrate.app, name="migrate", rich_help_panel=_PROCESSES)
main.add_typer(keys.app, name="keys", rich_help_panel=_PROCESSES)
main.add_typer(runner.app, name="runner", rich_help_panel=_PROCESSES)
main.add_typer(events.app, name="events", rich_help_panel=_CLIENT)
main.add_typer(runs.app, name="runs", rich_help_panel=_CLIENT)
main.add_typer(agents.app, name="agents", rich_help_panel=_CLIENT)
main.add_typer(bindings.app, name="bindings", rich_help_panel=_CLIENT)
main.add_typer(models.app, name="models", rich_help_panel=_CLIENT)
main.add_typer(tools.app, name="tools", rich_help_panel=_CLIENT)
main.add_typer(skills.app, name="skills", rich_help_panel=_CLIENT)
main.add_typer(knowledge.app, name="knowledge", rich_help_panel=_CLIENT)
main.add_typer(files.app, name="files", rich_help_panel=_CLIENT)
main.command(rich_help_panel=_CLIENT, epilog=host.EXIT_CODES)(runners.runners)
