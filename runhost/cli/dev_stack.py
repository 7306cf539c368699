"""Everything on one machine: Postgres, Temporal, API and worker, as children of this process (DESIGN 2)."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runhost.cli.keys import ensure_dev_key
from runhost.cli.migrate import upgrade
from runhost.cli.supervisor import Supervisor
from runhost.embedded import ChildProcess, DataDirectory, EmbeddedPostgres, EmbeddedTemporal
from runhost.embedded.loopback import LOOPBACK, claim_port, http_status
from runhost.embedded.temporal import NAMESPACE
from stores.keys import new_secret
from workflows.search_attributes import KEYWORDS

DATABASE = "runhost"
# Imports of a fresh checkout are compiled first, on a busy machine for long.
READY_TIMEOUT_SECONDS = 90.0
POLL_SECONDS = 0.05
# Somebody waits at the terminal; runs that are cut off go on with another attempt after the next start.
WORKER_GRACE_SECONDS = 2
HTTP_OK = 200

COMMANDS: Mapping[str, Sequence[str]] = {
    "api": (sys.executable, "-m", "runhost.cli", "api"),
    "worker": (sys.executable, "-m", "runhost.cli", "worker"),
}


@dataclass(frozen=True)
class DevOptions:
    """Where the stack keeps its data and listens; port 0 is any free one.

    Attributes:
        commands: What runs as ``api`` and as ``worker``.
    """

    data_dir: Path
    api_port: int = 0
    ui_port: int = 0
    temporal_port: int = 0
    postgres_port: int = 0
    commands: Mapping[str, Sequence[str]] = field(default_factory=lambda: COMMANDS)


@dataclass(frozen=True)
class DevStack:
    """What a running stack answers to. ``key`` may do everything in the workspace ``default``."""

    api: str
    ui: str
    key: str
    data_dir: str
    postgres: str
    temporal: str


class Command:
    """A command of ours as a service: a child process that is ready when ``is_ready`` says so."""

    def __init__(
        self,
        name: str,
        directory: DataDirectory,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        is_ready: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.name = name
        self._command = command
        self._environment = environment
        self._is_ready = is_ready
        steps = ((signal.SIGTERM, WORKER_GRACE_SECONDS + 8.0),)
        self._child = ChildProcess(name, directory, stop_steps=steps)
        self.wait = self._child.wait
        self.stop = self._child.stop
        self.kill = self._child.kill

    async def start(self) -> None:
        """Start the child and wait until it is ready.

        Raises:
            StartFailed: It ended or was not ready in time.
        """
        await self._child.start(self._command, environment=self._environment)
        if self._is_ready is None:
            return
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while not await self._is_ready():
            if not self._child.is_running:
                raise self._child.failed(f"it ended with code {await self._child.wait()}")
            if time.monotonic() > deadline:
                await self._child.stop()
                raise self._child.failed(f"it was not ready after {READY_TIMEOUT_SECONDS:.0f} s")
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def running_stack(options: DevOptions, supervisor: Supervisor) -> AsyncIterator[DevStack]:
    """Run the stack inside the block; leaving it stops API, worker, Temporal and Postgres, in this order.

    Raises:
        EmbeddedError: A port or the data directory is taken, or a service does not start.
    """
    with DataDirectory(options.data_dir) as directory:
        try:
            yield await _start(options, directory, supervisor)
        finally:
            await supervisor.stop()


async def _start(options: DevOptions, directory: DataDirectory, supervisor: Supervisor) -> DevStack:
    # All of them before anything is started, so that a busy one is told at once.
    api_port = claim_port("the API", options.api_port)
    claim_port("the Temporal UI", options.ui_port)
    claim_port("Temporal", options.temporal_port)
    claim_port("Postgres", options.postgres_port)

    postgres = EmbeddedPostgres(directory, port=options.postgres_port)
    temporal = EmbeddedTemporal(
        directory,
        port=options.temporal_port,
        ui_port=options.ui_port,
        search_attributes={key.name: "Keyword" for key in KEYWORDS},
    )
    await supervisor.start(postgres)
    await postgres.ensure_database(DATABASE)
    database_url = postgres.url(DATABASE)
    await asyncio.to_thread(upgrade, database_url)
    key = read_key(directory)
    await ensure_dev_key(database_url, key)
    await supervisor.start(temporal)

    environment = _environment(database_url, temporal.address, api_port)
    await supervisor.start(Command("worker", directory, options.commands["worker"], environment))
    answers = _answers(api_port)
    await supervisor.start(Command("api", directory, options.commands["api"], environment, is_ready=answers))
    return DevStack(
        api=f"http://{LOOPBACK}:{api_port}",
        ui=temporal.ui_url or "",
        key=key,
        data_dir=str(directory.path),
        postgres=postgres.url(DATABASE, driver="postgresql"),
        temporal=temporal.address,
    )


def read_key(directory: DataDirectory) -> str:
    """Return the key of the data directory, made on first use and readable by its owner only."""
    path = directory.path / "key"
    if not path.exists():
        unfinished = path.with_suffix(".new")
        unfinished.touch(mode=0o600)
        unfinished.write_text(new_secret() + "\n", "ascii")
        unfinished.rename(path)
    return path.read_text("ascii").strip()


def _answers(api_port: int) -> Callable[[], Awaitable[bool]]:
    async def answers() -> bool:
        try:
            return await asyncio.wait_for(http_status(api_port, "/healthz"), 1) == HTTP_OK
        except (OSError, TimeoutError):
            return False

    return answers


def _environment(database_url: str, temporal_address: str, api_port: int) -> dict[str, str]:
    """Build the children's environment: ours, with the settings that point at this stack."""
    elsewhere = {"RUNHOST_TEMPORAL_API_KEY", "RUNHOST_TEMPORAL_TLS"}
    return {name: value for name, value in os.environ.items() if name not in elsewhere} | {
        "RUNHOST_DATABASE_URL": database_url,
        "RUNHOST_TEMPORAL_ADDRESS": temporal_address,
        "RUNHOST_TEMPORAL_NAMESPACE": NAMESPACE,
        "RUNHOST_API_HOST": LOOPBACK,
        "RUNHOST_API_PORT": str(api_port),
        "RUNHOST_GRACEFUL_SHUTDOWN": str(WORKER_GRACE_SECONDS),
        "RUNHOST_LOG_FORMAT": "console",
    }
