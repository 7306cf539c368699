"""`runhost migrate`: brings a database to a revision of ``migrations/``."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"

app = typer.Typer(no_args_is_help=True, help="Bring the tables of the database RUNHOST_DATABASE_URL up to date.")


def upgrade(database_url: str, revision: str = "head") -> None:
    """Apply the migrations up to ``revision``; does nothing where they are applied.

    Blocking, and its environment runs an event loop of its own: call it in a thread from async code.

    Args:
        database_url: SQLAlchemy URL, ``postgresql+asyncpg://...``.
        revision: Target, ``head`` for the newest.
    """
    # Here and below: alembic is of the server's libraries, this module is loaded by every command.
    from alembic import command

    command.upgrade(alembic_config(database_url), revision)


def downgrade(database_url: str, revision: str) -> None:
    """Undo the migrations down to ``revision``, ``base`` for all of them. Blocking, see ``upgrade``."""
    from alembic import command

    command.downgrade(alembic_config(database_url), revision)


def current(database_url: str) -> str:
    """Return what alembic says about the database's revision, empty when it has none. Blocking."""
    from alembic import command

    output = io.StringIO()
    command.current(alembic_config(database_url, output))
    return output.getvalue().strip()


def alembic_config(database_url: str, output: io.StringIO | None = None) -> "Config":
    """Build alembic's configuration; there is no ``alembic.ini``, since the settings are ours.

    Args:
        database_url: SQLAlchemy URL, found by ``migrations/env.py`` as ``sqlalchemy.url``.
        output: Where alembic writes, None for standard output.
    """
    from alembic.config import Config

    config = Config(stdout=output) if output is not None else Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    # The option file format would take a % of the password as an interpolation.
    config.set_main_option("sqlalchemy.url", database_url.replace("%", "%%"))
    return config


@app.command("upgrade")
def upgrade_command(revision: Annotated[str, typer.Argument(help="Where to stop.")] = "head") -> None:
    """Apply what is missing, and name the revision reached."""
    url = _database_url()
    upgrade(url, revision)
    typer.echo(current(url))


@app.command("downgrade")
def downgrade_command(revision: Annotated[str, typer.Argument(help="Where to stop; base undoes everything.")]) -> None:
    """Undo migrations, with the data in the tables they made, and name the revision reached."""
    url = _database_url()
    downgrade(url, revision)
    typer.echo(current(url))


@app.command("current")
def current_command() -> None:
    """Name the database's revision."""
    typer.echo(current(_database_url()))


def _database_url() -> str:
    from runhost.cli.startup import start_process

    return start_process().database_url.get_secret_value()
