"""`runhost demo`: one chat message, one real model, one durable run."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from runhost.cli.output import fail, note

if TYPE_CHECKING:
    from runhost.cli.demo_play import DemoOptions

# As `runhost dev`: a wheel is missing, or something stands in the way.
EXIT_CANNOT_START = 2


def demo(
    message: Annotated[str | None, typer.Option(help="What to say to the model.")] = None,
    scripted: Annotated[bool, typer.Option("--scripted", help="Play a script instead of asking the model.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the last line only to standard output, the rest to standard error.")
    ] = False,
) -> None:
    """Send one chat message to a small language model and watch the durable run that answers it.

    Starts a whole host on free ports with data of its own, prints the answer
    as it comes, then the ledger of the run and where the Temporal UI shows it,
    and stops all. The last line is JSON: run_id, status, results, deltas,
    contiguous (no ledger row is missing) and first_delta_ms.

    Exit codes: 0 the run completed, 1 it did not, 2 could not start, 130 Ctrl-C.
    """
    note("Starting Postgres, Temporal, API and worker.")
    # Here, so that the commands which talk to a host elsewhere work without the server's libraries.
    from runhost.cli.demo_agent import MESSAGE
    from runhost.cli.demo_play import DemoFailed, DemoOptions
    from runhost.cli.logging import configure_logging
    from runhost.embedded import EmbeddedError

    configure_logging("warning", "console")
    try:
        code = asyncio.run(_run(DemoOptions(message or MESSAGE, scripted=scripted, keep=keep, as_json=as_json)))
    except EmbeddedError as error:
        fail(EXIT_CANNOT_START, str(error))
    except DemoFailed as error:
        fail(1, str(error))
    raise typer.Exit(code)


async def _run(options: "DemoOptions") -> int:
    from runhost.cli.demo_play import play
    from runhost.cli.stopping import until_stopped
    from runhost.cli.supervisor import Supervisor

    supervisor = Supervisor(note)
    return await until_stopped(
        play(options, supervisor),
        on_first=lambda: note("\nStopping; once more to stop at once."),
        on_second=supervisor.kill,
    )
