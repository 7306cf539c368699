"""What commands write: results to standard output, everything else to standard error.

Texts of users, models and runners are data. Before a terminal sees them they lose what a terminal obeys.
"""

import io
import json
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3

# Tables in files and pipes are not cut to the width of a terminal that nobody looks at.
WIDTH_WITHOUT_TERMINAL = 200

# Control characters, lone surrogates, and what turns the direction of writing around. A carriage return lets a
# text write over itself.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_STATUS_STYLES: Mapping[str, str] = {
    "completed": "green",
    "failed": "red",
    "timeout": "red",
    "lost": "red",
    "cancelled": "yellow",
}


def prepare_streams() -> None:
    """Write what the terminal's encoding lacks as escapes, where Python would raise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def plain(text: str) -> str:
    """Return a text without what a terminal would obey; lines and tabs stay."""
    return _OBEYED.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 100) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(plain(text[: limit * 2]).split())
    return line if len(line) <= limit and len(text) <= limit * 2 else line[: limit - 1] + "…"


def write_json(document: object) -> None:
    """Write a document as one line of JSON in UTF-8."""
    line = json.dumps(document, ensure_ascii=False)
    # The escape that stands for a lone surrogate is the one that JSON has for it (D-31).
    typer.echo(line.encode("utf-8", "backslashreplace"))


def note(text: str) -> None:
    """Tell the person at the terminal something."""
    typer.echo(plain(text), err=True)


def fail(code: int, text: str) -> NoReturn:
    """End the command with an exit code and a sentence that says what to do."""
    typer.secho(f"Error: {plain(text)}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)


def results() -> Console:
    """Return the console for results."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = WIDTH_WITHOUT_TERMINAL
    return console


def new_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table; ids in it are never cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", header_style="dim")
    return table


def cell(value: object) -> Text:
    """Return a value as a cell of a table."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, datetime):
        return Text(f"{value:%Y-%m-%d %H:%M:%S}")
    return Text(one_line(str(value), 300))


def status_cell(status: str | None) -> Text:
    """Return a status in its colour."""
    return cell(None) if status is None else Text(plain(status), style=_STATUS_STYLES.get(status, "cyan"))


def seconds_between(start: datetime | None, end: datetime | None) -> str | None:
    """Return the time between two moments, such as ``2.31 s``."""
    return None if start is None or end is None else f"{(end - start).total_seconds():.2f} s"
