"""What a measure needs to play: the servers, a client of each, and the processes of the host."""

import asyncio
import os
import platform
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, Self

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio.client import Client

from api.auth import Scope
from runhost.cli.running_worker import WorkerOptions
from runhost.embedded import ChildProcess
from runhost.embedded.loopback import LOOPBACK, claim_port, http_status
from runhost.embedded.temporal import FAST_QUEUES, FAST_SQLITE, NAMESPACE
from runhost.protocol import JsonObject
from stores.driver import driver_dsn, driver_pool
from stores.engine import build_engine
from stores.keys import KeyStore, new_secret
from tests.benchmarks.effort import Effort
from tests.benchmarks.hosts import RUNNERS, BenchHost
from tests.benchmarks.notes import Notes
from tests.benchmarks.servers import Servers
from workflows.client import connect

POOL_SIZE = 20
START_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.05
HTTP_OK = 200


class WorkerProcess(Protocol):
    """A worker as a measure knows it."""

    @property
    def pid(self) -> int | None:
        """Its process, None once it has ended."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


@dataclass(frozen=True)
class ServedApi:
    """An API process; ``key`` may do everything in the workspace it was made for."""

    port: int
    key: str


@dataclass(frozen=True)
class Stage:
    """Running servers and who talks to them.

    Attributes:
        pool: For commits; ``announcer_pool`` for their announcements, both as a worker has them.
        settings: What every line says of machine and servers.
        say: Takes one line of news for the person at the terminal.
    """

    effort: Effort
    servers: Servers
    engine: AsyncEngine
    pool: asyncpg.Pool
    announcer_pool: asyncpg.Pool
    client: Client
    notes: Notes
    settings: JsonObject
    say: Callable[[str], None]

    @classmethod
    @asynccontextmanager
    async def on(cls, servers: Servers, effort: Effort, say: Callable[[str], None]) -> AsyncIterator[Self]:
        """Connect to the servers inside the block."""
        async with AsyncExitStack() as stack:
            engine = build_engine(servers.database_url, pool_size=POOL_SIZE, application_name="runhost bench")
            stack.push_async_callback(engine.dispose)
            pool, announcer_pool = [
                await stack.enter_async_context(
                    driver_pool(servers.database_url, size=size, application_name="runhost bench")
                )
                for size in (WorkerOptions().journal_connections, 1)
            ]
            notes = await stack.enter_async_context(Notes(servers.directory.path / "notes"))
            client = await connect(servers.temporal_address, NAMESPACE)
            settings = await _settings(engine)
            yield cls(effort, servers, engine, pool, announcer_pool, client, notes, settings, say)

    @property
    def dsn(self) -> str:
        """The database, as asyncpg takes it."""
        return driver_dsn(self.servers.database_url)

    def host(self, measure: str) -> BenchHost:
        """Return a host with a workspace and a task queue that nobody else uses."""
        name = f"bench-{measure}-{secrets.token_hex(4)}"
        return BenchHost(self.engine, self.servers.database_url, name, client=self.client, task_queue=name)

    @asynccontextmanager
    async def worker(self, host: BenchHost) -> AsyncIterator[WorkerProcess]:
        """Run `runhost worker` inside the block, for the runs of ``host``, which wait until it is there."""
        async with self._process("worker", "runhost.cli", "worker", **self._environment(host)) as child:
            yield child

    @asynccontextmanager
    async def bare_worker(self, host: BenchHost) -> AsyncIterator[WorkerProcess]:
        """Run a worker for bare workflows inside the block, on the bare queue of ``host``."""
        arguments = ("tests.benchmarks.bare", self.servers.temporal_address, host.bare_queue)
        async with self._process("bare", *arguments) as child:
            yield child

    @asynccontextmanager
    async def both_workers(self, host: BenchHost, name: str) -> AsyncIterator[WorkerProcess]:
        """Run one process inside the block that is a worker of either kind; entered once it is both."""
        arguments = ("tests.benchmarks.both_workers", host.bare_queue)
        async with self._process(name, *arguments, **self._environment(host)) as child:
            await self.notes.at("working", str(child.pid))
            yield child

    @asynccontextmanager
    async def api(self, host: BenchHost) -> AsyncIterator[ServedApi]:
        """Run `runhost api` inside the block, for the workspace of ``host``."""
        port, key = claim_port("the API", 0), await self.make_key(host)
        address = {"RUNHOST_API_HOST": LOOPBACK, "RUNHOST_API_PORT": str(port)}
        async with self._process("api", "runhost.cli", "api", **self._environment(host), **address) as child:
            async with asyncio.timeout(START_TIMEOUT_SECONDS):
                while not await _answers(port):
                    if not child.is_running:
                        raise child.failed(f"it ended with code {await child.wait()}")
                    await asyncio.sleep(POLL_SECONDS)
            yield ServedApi(port, key)

    async def make_key(self, host: BenchHost) -> str:
        """Make a key that may do everything in the workspace of ``host``."""
        key, scopes = new_secret(), [scope.value for scope in Scope]
        async with self.engine.begin() as connection:
            await KeyStore(connection).register(key, workspace_id=host.workspace_id, name="bench", scopes=scopes)
        return key

    async def terminate_workflows(self, host: BenchHost) -> None:
        """Leave no open workflow of ``host`` to the measures that follow."""
        queues = f"TaskQueue IN ('{host.task_queue}', '{host.bare_queue}')"
        async for workflow in self.client.list_workflows(f"ExecutionStatus = 'Running' AND {queues}"):
            await self.client.get_workflow_handle(workflow.id).terminate("The bench is done with it.")

    @asynccontextmanager
    async def _process(self, name: str, *arguments: str, **settings: str) -> AsyncIterator[ChildProcess]:
        """Run ``python -m ARGUMENTS`` inside the block, with further environment variables."""
        child = ChildProcess(name, self.servers.directory, stop_steps=((signal.SIGTERM, 10.0),))
        try:
            await child.start((sys.executable, "-m", *arguments), environment={**os.environ, **settings})
            yield child
        finally:
            await child.stop()

    def _environment(self, host: BenchHost) -> dict[str, str]:
        return {
            "RUNHOST_DATABASE_URL": self.servers.database_url,
            "RUNHOST_TEMPORAL_ADDRESS": self.servers.temporal_address,
            "RUNHOST_TEMPORAL_NAMESPACE": NAMESPACE,
            "RUNHOST_TASK_QUEUE": host.task_queue,
            "RUNHOST_RUNNER_PATHS": str(RUNNERS),
            "RUNHOST_GRACEFUL_SHUTDOWN": "0",
            "RUNHOST_LOG_LEVEL": "warning",
        }


async def _settings(engine: AsyncEngine) -> JsonObject:
    async with engine.connect() as connection:
        version = await connection.scalar(text("SHOW server_version"))
        fsync = await connection.scalar(text("SHOW fsync"))
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "postgres": {"version": version, "fsync": fsync, "place": "same machine"},
        "temporal": {
            "server": "dev server, same machine, SQLite file",
            "sqlite": dict(FAST_SQLITE),
            "dynamic_config": dict(FAST_QUEUES),
        },
    }


async def _answers(port: int) -> bool:
    try:
        return await asyncio.wait_for(http_status(port, "/healthz"), 1) == HTTP_OK
    except (OSError, TimeoutError):
        return False
