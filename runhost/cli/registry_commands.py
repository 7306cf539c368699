"""What the commands for registries have in common: a list, an entry, an end, and secrets from the environment."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from pydantic import BaseModel
from rich.text import Text

from runhost.cli.host import talk
from runhost.cli.output import cell, new_table, note, plain, results, write_json
from runhost.cli.paging import SomeItems, read_items

if TYPE_CHECKING:
    from runhost.client import RunhostClient

MAX_SECRET_BYTES = 64 * 1024

Entry = TypeVar("Entry", bound=BaseModel)
Host = tuple[str | None, str | None]
"""Options ``--api`` and ``--key``."""


def show_list(
    host: Host,
    as_json: bool,
    fetch: "Callable[[RunhostClient, int, str | None], Awaitable[SomeItems[Entry]]]",
    *,
    columns: Sequence[str],
    row: Callable[[Entry], Sequence[object]],
    empty: str,
) -> None:
    """List entries as a table, or one JSON object per line.

    Args:
        host: Where.
        as_json: Whether for programs.
        fetch: Reads a page of so many entries from a cursor on.
        columns: Heads of the columns.
        row: Cells of an entry.
        empty: What to say if there is none.
    """

    async def command(client: "RunhostClient") -> None:
        entries = await read_items(lambda size, cursor: fetch(client, size, cursor))
        if as_json:
            for entry in entries:
                write_json(entry.model_dump(mode="json"))
        elif entries:
            table = new_table(*columns)
            for entry in entries:
                table.add_row(*map(cell, row(entry)))
            results().print(table)
        else:
            note(empty)

    talk(*host, command)


def show_entry(host: Host, as_json: bool, fetch: "Callable[[RunhostClient], Awaitable[BaseModel]]") -> None:
    """Show all that is told of an entry."""

    async def command(client: "RunhostClient") -> None:
        document = (await fetch(client)).model_dump(mode="json")
        if as_json:
            write_json(document)
            return
        table = new_table("field", "value")
        for name, value in document.items():
            table.add_row(cell(name), _whole(value))
        results().print(table)

    talk(*host, command)


def end_entry(host: Host, as_json: bool, name: str, end: "Callable[[RunhostClient], Awaitable[None]]") -> None:
    """Delete an entry; ``name`` says which, such as ``Model m1``."""

    async def command(client: "RunhostClient") -> None:
        await end(client)
        if as_json:
            write_json({"deleted": True})
        else:
            note(f"{name} is deleted. Runs that are under way cannot use it any more.")

    talk(*host, command)


def secret_from_environment(variable: str, option: str) -> str:
    """Return the value of an environment variable, which nobody sees in the list of processes (G-6).

    Raises:
        typer.BadParameter: It is not set, or empty.
    """
    value = os.environ.get(variable, "")
    if not value:
        raise typer.BadParameter(f"the environment variable {variable!r} is not set", param_hint=option)
    return value


def secret_from_input(option: str) -> str:
    """Return what standard input holds, less the end of its line.

    Raises:
        typer.BadParameter: It holds nothing, or no text.
    """
    try:
        text = sys.stdin.buffer.read(MAX_SECRET_BYTES).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise typer.BadParameter("standard input is no UTF-8 text", param_hint=option) from None
    if not text:
        raise typer.BadParameter("standard input is empty", param_hint=option)
    return text


def secrets_by_name(assignments: Sequence[str], option: str) -> dict[str, str]:
    """Return values by name for assignments ``NAME=VARIABLE``, or ``NAME`` for a variable of that name.

    Raises:
        typer.BadParameter: A variable is not set.
    """
    values: dict[str, str] = {}
    for assignment in assignments:
        name, _, variable = assignment.partition("=")
        values[name] = secret_from_environment(variable or name, option)
    return values


def _whole(value: Any) -> Text:
    """Return a value as a cell, whole where a cell of a list would have its beginning."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " ".join(value) or None
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    return Text(plain(value)) if isinstance(value, str) else cell(value)
