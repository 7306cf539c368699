"""What every server process does first: read the settings and set up logging."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import typer
from pydantic import ValidationError

from runhost.cli.logging import configure_logging
from runhost.settings import Settings

# The same as for wrong options.
EXIT_USAGE = 2


def serve_until_stopped(serve: Callable[[Settings], Coroutine[Any, Any, None]]) -> None:
    """Run ``serve`` with the settings of this process until it returns."""
    asyncio.run(serve(start_process()))
    # Temporal's clients have to be collected before the interpreter ends, which otherwise crashes now and
    # then (TEMPORAL 13.1). Goes when the SDK is fixed.
    gc.collect()


def start_process() -> Settings:
    """Return the settings of this process and send its logs to standard error.

    Raises:
        typer.Exit: A setting is missing or wrong; standard error says which.
    """
    try:
        settings = Settings()  # pyright: ignore[reportCallIssue]
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            name = "_".join(str(part) for part in problem["loc"]).upper()
            typer.echo(f"RUNHOST_{name}: {problem['msg']}", err=True)
        raise typer.Exit(EXIT_USAGE) from None
    configure_logging(settings.log_level, settings.log_format)
    return settings
