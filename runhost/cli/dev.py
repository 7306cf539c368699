"""`runhost dev`: the whole stack in one foreground command."""

import asyncio
import dataclasses
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from typer.models import OptionInfo

if TYPE_CHECKING:
    from runhost.cli.dev_stack import DevOptions, DevStack
    from runhost.cli.supervisor import Supervisor

# Busy port, second instance, missing wheel: the person has to change something and try again.
EXIT_CANNOT_START = 2
API_PORT = 8080
UI_PORT = 8233
TEMPORAL_PORT = 7233
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

console = Console(stderr=True, highlight=False)


def _port(explanation: str) -> OptionInfo:
    return typer.Option(help=explanation, min=0, max=65_535)


def dev(
    data_dir: Annotated[Path, typer.Option(help="Where all data is kept; made when missing.")] = Path(".runhost"),
    port: Annotated[int, _port("Port of the API. With 0, this and all ports not given are any free ones.")] = API_PORT,
    ui_port: Annotated[int | None, _port(f"Port of the Temporal web UI, if not {UI_PORT}.")] = None,
    temporal_port: Annotated[int | None, _port(f"Port of Temporal, if not {TEMPORAL_PORT}.")] = None,
    postgres_port: Annotated[int | None, _port("Port of Postgres, if not any free one.")] = None,
) -> None:
    """Run Postgres, Temporal with its UI, the API and a worker, until Ctrl-C.

    Everything listens on 127.0.0.1 and keeps its data in the data directory; the next start goes on with it.
    Standard output gets one line of JSON once all is ready: api, ui, key, data_dir, postgres, temporal.
    What ends is started again; its log is in the folder logs of the data directory.

    Exit codes: 0 stopped by Ctrl-C or a signal, 2 could not start (a port or the data directory is taken),
    1 a part ended again and again.
    """
    console.print("Starting Postgres, Temporal, worker and API.")
    # Here, so that the commands which talk to a host elsewhere work without the server's libraries.
    from runhost.cli.dev_stack import DevOptions
    from runhost.cli.logging import configure_logging
    from runhost.cli.supervisor import GaveUp
    from runhost.embedded import EmbeddedError

    configure_logging("warning", "console")
    options = DevOptions(
        data_dir,
        api_port=port,
        ui_port=_or_default(ui_port, UI_PORT if port else 0),
        temporal_port=_or_default(temporal_port, TEMPORAL_PORT if port else 0),
        postgres_port=postgres_port or 0,
    )
    try:
        asyncio.run(run_dev(options))
    except EmbeddedError as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(1 if isinstance(error, GaveUp) else EXIT_CANNOT_START) from None


def _or_default(port: int | None, default: int) -> int:
    return default if port is None else port


async def run_dev(options: "DevOptions") -> None:
    """Run the stack until a signal; a second signal ends its parts at once.

    Raises:
        EmbeddedError: It could not start, or a part ended again and again.
    """
    from runhost.cli.supervisor import Supervisor

    supervisor = Supervisor(lambda news: console.print(news, markup=False))
    serving = asyncio.create_task(_serve(options, supervisor))

    def stop() -> None:
        if serving.cancelling():
            supervisor.kill()
            return
        console.print("Stopping; once more to stop at once.")
        serving.cancel()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        await serving
    except asyncio.CancelledError:
        console.print("Stopped. The data is kept for the next start.")


async def _serve(options: "DevOptions", supervisor: "Supervisor") -> None:
    from runhost.cli.dev_stack import running_stack

    async with running_stack(options, supervisor) as stack:
        _show(stack)
        await supervisor.watch()


def _show(stack: "DevStack") -> None:
    """Write the block for people to standard error and the line for programs to standard output."""
    table = Table.grid(padding=(0, 2))
    table.add_row("API", stack.api)
    table.add_row("Temporal UI", stack.ui)
    table.add_row("Key", stack.key)
    table.add_row("Data, logs", stack.data_dir)
    console.print(table)
    console.print("Ctrl-C stops everything.")
    typer.echo(json.dumps(dataclasses.asdict(stack)))
