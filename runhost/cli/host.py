"""The host that the commands for people talk to, and what becomes of its refusals."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from runhost.cli.output import EXIT_REFUSED, EXIT_UNREACHABLE, EXIT_USAGE, fail

if TYPE_CHECKING:
    from runhost.client import RunhostClient

EXIT_CODES = (
    "Exit codes: 0 done, 1 the host refused or the run did not complete, 2 wrong usage, "
    "3 the host cannot be reached, 130 Ctrl-C."
)
_PANEL = "Host"

ApiUrl = Annotated[
    str | None,
    typer.Option(
        "--api",
        metavar="URL",
        help="Address of the API; else RUNHOST_API_URL, else http://127.0.0.1:8080.",
        rich_help_panel=_PANEL,
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="Bearer key; better RUNHOST_KEY, since options show in the list of processes.",
        rich_help_panel=_PANEL,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs, one object per line, and nothing else.")]


def examples(*lines: str) -> str:
    """Return the end of a command's help: commands to try, and the exit codes."""
    return "\n\n".join(("Examples:", *lines, EXIT_CODES))


def talk(api: str | None, key: str | None, command: Callable[["RunhostClient"], Awaitable[None]]) -> None:
    """Run a command that talks to the host; what the host refuses ends it with a sentence, not a traceback.

    Args:
        api: Option ``--api``.
        key: Option ``--key``.
        command: Does the work; `typer.Exit` passes.
    """
    # Here, so that the help of all commands comes without the time that these take to load.
    from runhost.client import ClientError, HostUnreachable, RunhostClient

    url, secret = _connection(api, key)
    try:
        client = RunhostClient(url, secret)
    except ValueError as error:
        fail(EXIT_USAGE, f"{error} (options --api and --key, or RUNHOST_API_URL and RUNHOST_KEY)")

    async def run() -> None:
        async with client:
            await command(client)

    try:
        asyncio.run(run())
    except HostUnreachable as error:
        fail(EXIT_UNREACHABLE, f"{error} `runhost dev` starts one; --api or RUNHOST_API_URL names another address.")
    except ClientError as error:
        fail(EXIT_REFUSED, str(error))


def _connection(api: str | None, key: str | None) -> tuple[str, str]:
    """Return address and key: of the options, else of the environment."""
    from runhost.settings import ClientSettings

    settings = ClientSettings()
    secret = key or (settings.key.get_secret_value() if settings.key else "")
    if not secret:
        fail(
            EXIT_USAGE,
            "No key. Set RUNHOST_KEY or pass --key. `runhost dev` shows the key of its host and keeps it in "
            "the file 'key' of its data directory; `runhost keys create` makes others.",
        )
    return api or settings.api_url, secret
