"""`runhost runs authorization | accesses | revoke`: what a run may reach, what it did reach, and taking it back."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from runhost.cli.host import ApiKey, ApiUrl, AsJson, talk
from runhost.cli.output import EXIT_USAGE, cell, fail, new_table, note, results, write_json
from runhost.cli.paging import MAX_ITEMS, read_items

if TYPE_CHECKING:
    from rich.table import Table

    from runhost.client import AccessRead, Authorization, RevocationKind, RunAuthorization, RunhostClient

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run, as `runhost runs list` shows it.")]
KINDS: "tuple[RevocationKind, ...]" = ("model", "tool", "knowledge_base", "skill", "file", "run")


def authorization_command(
    run_id: RunId,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run was granted, what was taken back, and what it may still call.

    With --json it is one object with snapshot, revocations and effective.
    """

    async def command(client: "RunhostClient") -> None:
        found = await client.get_authorization(run_id)
        if as_json:
            write_json(found.model_dump(mode="json"))
        elif found.snapshot is None:
            note("The run is not prepared yet; what it is granted is decided then.")
        else:
            results().print(_table(found))

    talk(api, key, command)


def accesses_command(
    run_id: RunId,
    limit: Annotated[int, typer.Option(min=1, max=MAX_ITEMS, help="Calls at most, from the newest.")] = 100,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show the calls that a run made of the host, granted and refused ones, the newest first."""

    async def command(client: "RunhostClient") -> None:
        found = await read_items(lambda size, cursor: client.list_accesses(run_id, limit=size, cursor=cursor), limit)
        if as_json:
            for access in found:
                write_json(access.model_dump(mode="json"))
        elif found:
            results().print(_access_table(found))
        else:
            note("The run has called nothing yet.")

    talk(api, key, command)


def revoke_command(
    run_id: RunId,
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}; run takes everything.")],
    resource_id: Annotated[
        str | None, typer.Argument(metavar="[RESOURCE]", help="Which one, as `runhost runs authorization` shows it.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the ledger, at most 1,000 characters.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Take a grant back from a run that has not ended. It counts at once and cannot be undone for this run."""
    found: RevocationKind | None = next((known for known in KINDS if known == kind), None)
    if found is None:
        fail(EXIT_USAGE, f"There is no kind {kind!r}; one of {', '.join(KINDS)}.")
    if (found == "run") != (resource_id is None):
        fail(EXIT_USAGE, "Name the RESOURCE to take back; only the kind run goes without one.")

    async def command(client: "RunhostClient") -> None:
        left = await client.revoke_grant(run_id, found, resource_id, reason=reason)
        if as_json:
            write_json(left.model_dump(mode="json"))
        else:
            what = "everything" if resource_id is None else f"{found} {resource_id}"
            note(f"Run {left.run_id} has lost {what}. `runhost runs authorization {left.run_id}` shows what is left.")

    talk(api, key, command)


def _access_table(accesses: "Sequence[AccessRead]") -> "Table":
    table = new_table("when (UTC)", "attempt", "call", "of", "scope", "result", "ms")
    for access in accesses:
        cells = (access.created_at, access.attempt, access.action, access.resource, access.scope, access.result)
        table.add_row(*(cell(value) for value in cells), f"{access.duration_ms:.1f}")
    return table


def _table(found: "RunAuthorization") -> "Table":
    table = new_table("kind", "granted", "operations", "taken back (UTC)", "why")
    taken = {(entry.kind, entry.id): entry for entry in found.revocations}
    everything = taken.get(("run", None))
    left = set(_rows(found.effective))
    for row in _rows(found.snapshot):
        kind, name, operations = row
        # A file may have gone with its base; then nothing was said of it alone.
        entry = taken.get((kind, name)) or everything
        is_gone = row not in left
        when = (entry.revoked_at if entry else "yes") if is_gone else None
        table.add_row(
            cell(kind), cell(name), cell(operations), cell(when), cell(entry.reason if entry and is_gone else None)
        )
    return table


def _rows(part: "Authorization | None") -> Iterator[tuple[str, str, str]]:
    if part is None:
        return
    resources = part.resources
    for kind, items, id_field in (
        ("model", resources.models, "model_id"),
        ("tool", resources.tools, "tool_name"),
        ("knowledge_base", resources.knowledge_bases, "kb_id"),
        ("file", resources.files, "file_id"),
    ):
        for item in items:
            yield kind, getattr(item, id_field), " ".join(item.operations)
    for skill in resources.skills:
        yield "skill", skill.skill_name, "activate"
    for name, is_on in part.available_apis:
        if is_on:
            yield "api", name, ""
