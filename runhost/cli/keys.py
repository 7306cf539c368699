"""`runhost keys`: API keys, made and ended straight in the database, where no key is needed yet."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from runhost.cli.host import AsJson
from runhost.cli.output import EXIT_REFUSED, EXIT_UNREACHABLE, cell, fail, new_table, note, results, write_json

if TYPE_CHECKING:
    from stores.keys import ApiKey, KeyStore

DEV_WORKSPACE = "default"
# What a program needs that sends events and looks at what becomes of them.
DEFAULT_SCOPES = ("events:write", "runs:read", "runs:write", "artifacts:read")
MAX_EXPIRY_DAYS = 36_500
UNDEFINED_TABLE = "42P01"
# Unknown database, unknown role, wrong password: classes of SQLSTATE.
REFUSED_CONNECTION = ("28", "3D")
EXIT_CODES = "Exit codes: 0 done, 1 refused, 2 wrong usage or setting, 3 the database cannot be reached."

app = typer.Typer(
    no_args_is_help=True, help="API keys, straight in the database that RUNHOST_DATABASE_URL names.", epilog=EXIT_CODES
)


@app.command(
    "create",
    epilog="Examples:\n\nRUNHOST_KEY=$(runhost keys create my-plugin)\n\n"
    f"runhost keys create ci --scope runs:read --expires-in-days 30 --json\n\n{EXIT_CODES}",
)
def create_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    workspace: Annotated[str, typer.Option(help="Workspace whose data the key opens.")] = DEV_WORKSPACE,
    scopes: Annotated[
        list[str] | None,
        typer.Option("--scope", help=f"What it may do; may be given more than once. Else {', '.join(DEFAULT_SCOPES)}."),
    ] = None,
    every_scope: Annotated[bool, typer.Option("--all-scopes", help="It may do everything.")] = False,
    expires_in_days: Annotated[
        int | None, typer.Option(min=1, max=MAX_EXPIRY_DAYS, help="Else it is valid until revoked.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and write its secret to standard output, this once: only a hash of it is kept."""
    from stores.keys import new_secret

    chosen = _known_scopes() if every_scope else _checked_scopes(scopes or list(DEFAULT_SCOPES))
    expires_at = None if expires_in_days is None else datetime.now(UTC) + timedelta(days=expires_in_days)
    secret = new_secret()

    async def command(keys: "KeyStore") -> None:
        await keys.register(secret, workspace_id=workspace, name=name, scopes=chosen, expires_at=expires_at)
        key = await keys.find(secret)
        if key is None:
            # The clocks of this machine and of the database are more than a day apart.
            fail(EXIT_REFUSED, "The key has expired already; check the clocks of this machine and the database.")
        if as_json:
            write_json({"key": secret, **_document(key)})
            return
        note(f"Key {key.key_id} of workspace {workspace}: {', '.join(chosen)}. Its secret is shown this once:")
        typer.echo(secret)

    _with_keys(command)


@app.command("list")
def list_command(
    workspace: Annotated[str | None, typer.Option(help="Only keys of this workspace.")] = None, as_json: AsJson = False
) -> None:
    """List the keys, the oldest first; nobody can show their secrets."""

    async def command(keys: "KeyStore") -> None:
        found = await keys.list(workspace)
        if as_json:
            for key in found:
                write_json(_document(key))
            return
        table = new_table("key", "workspace", "name", "state", "created (UTC)", "expires (UTC)", "scopes")
        for key in found:
            cells = (key.workspace_id, key.name, _state(key), key.created_at, key.expires_at, ", ".join(key.scopes))
            table.add_row(cell(key.key_id), *map(cell, cells))
        table.columns[0].no_wrap = True
        results().print(table)

    _with_keys(command)


@app.command("revoke")
def revoke_command(
    key_id: Annotated[UUID, typer.Argument(metavar="KEY_ID", help="Id of the key, as `runhost keys list` shows it.")],
    as_json: AsJson = False,
) -> None:
    """End a key at once."""

    async def command(keys: "KeyStore") -> None:
        if not await keys.revoke(key_id):
            fail(EXIT_REFUSED, f"There is no key {str(key_id)!r} that is valid. `runhost keys list` shows all.")
        if as_json:
            write_json({"key_id": str(key_id), "revoked": True})
        else:
            note(f"Key {key_id} is revoked.")

    _with_keys(command)


async def ensure_dev_key(database_url: str, key: str) -> None:
    """Let ``key`` do everything in the workspace ``default``; one that is known already stays as it is."""

    async def command(keys: "KeyStore") -> None:
        await keys.register(key, workspace_id=DEV_WORKSPACE, name="dev", scopes=_known_scopes())

    await _in_transaction(database_url, command)


def _with_keys(command: "Callable[[KeyStore], Awaitable[None]]") -> None:
    """Run a command in a transaction of the database that the settings name."""
    from sqlalchemy.exc import DBAPIError

    from runhost.cli.startup import start_process
    from stores.availability import is_unavailable

    database_url = start_process().database_url.get_secret_value()
    try:
        asyncio.run(_in_transaction(database_url, command))
    except Exception as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        state = getattr(reason, "sqlstate", None) or ""
        if state == UNDEFINED_TABLE:
            fail(EXIT_REFUSED, "The database has no tables yet. `runhost migrate upgrade` makes them.")
        if state.startswith(REFUSED_CONNECTION) or is_unavailable(error):
            fail(EXIT_UNREACHABLE, f"No database: {reason or type(reason).__name__}. RUNHOST_DATABASE_URL names it.")
        raise


async def _in_transaction(database_url: str, command: "Callable[[KeyStore], Awaitable[None]]") -> None:
    from stores.engine import build_engine
    from stores.keys import KeyStore

    engine = build_engine(database_url, pool_size=1, application_name="runhost keys")
    try:
        async with engine.begin() as connection:
            await command(KeyStore(connection))
    finally:
        await engine.dispose()


def _known_scopes() -> list[str]:
    from api.auth import Scope

    return [scope.value for scope in Scope]


def _checked_scopes(scopes: list[str]) -> list[str]:
    known = _known_scopes()
    unknown = [scope for scope in scopes if scope not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is no scope; scopes are {', '.join(known)}", param_hint="--scope")
    return list(dict.fromkeys(scopes))


def _state(key: "ApiKey") -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= datetime.now(UTC) else "valid"


def _document(key: "ApiKey") -> dict[str, Any]:
    times = {name: getattr(key, name) for name in ("created_at", "expires_at", "revoked_at")}
    return {
        "key_id": str(key.key_id),
        "workspace_id": key.workspace_id,
        "name": key.name,
        "scopes": list(key.scopes),
        "state": _state(key),
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
    }
