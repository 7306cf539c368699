"""The Postgres and the Temporal that all measures of one bench share."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from runhost.cli.migrate import upgrade
from runhost.embedded import DataDirectory, EmbeddedPostgres, EmbeddedTemporal
from workflows.search_attributes import KEYWORDS


@dataclass(frozen=True)
class Servers:
    """Running servers.

    Attributes:
        directory: For the files and child processes of the bench.
        database_url: SQLAlchemy URL of a migrated database.
        make_database: Makes a further migrated one of a given name and returns its URL.
    """

    directory: DataDirectory
    database_url: str
    make_database: Callable[[str], Awaitable[str]]
    temporal_address: str
    temporal_pid: int


@asynccontextmanager
async def running_servers() -> AsyncIterator[Servers]:
    """Start both in a temporary folder; leaving the block stops them and removes it.

    They keep their data on disk as under `runhost dev`, Temporal with the settings of TEMPORAL rule 14.
    """
    path = _make_folder()
    try:
        async with AsyncExitStack() as stack:
            directory = stack.enter_context(DataDirectory(path))
            postgres = EmbeddedPostgres(directory)
            attributes = {key.name: "Keyword" for key in KEYWORDS}
            temporal = EmbeddedTemporal(directory, ui_port=None, search_attributes=attributes, stop_grace_seconds=0)
            for server in (postgres, temporal):
                stack.push_async_callback(server.stop)
                await server.start()

            async def make_database(name: str) -> str:
                await postgres.ensure_database(name)
                await asyncio.to_thread(upgrade, postgres.url(name))
                return postgres.url(name)

            database_url = await make_database("runhost")
            yield Servers(directory, database_url, make_database, temporal.address, temporal.pid or 0)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _make_folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="runhost-bench-"))
    # Postgres may run as an account of its own, which has to reach its data.
    path.chmod(0o711)
    return path
