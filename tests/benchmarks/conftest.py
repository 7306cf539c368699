"""A stage on the servers of the test session, whose workers and API live in the test's own process."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from api.app import ApiDependencies, build_app
from api.server import ApiServer
from runhost.embedded import DataDirectory
from tests.benchmarks.bare import bare_worker
from tests.benchmarks.effort import QUICK
from tests.benchmarks.hosts import RUNNERS, BenchHost
from tests.benchmarks.servers import Servers
from tests.benchmarks.stage import ServedApi, Stage, WorkerProcess
from tests.eventually import eventually


class ThisProcess:
    """Stands for the process of a worker."""

    pid = os.getpid()

    def kill(self) -> None:
        raise NotImplementedError("A measure that kills workers needs processes of its own.")


class InProcessStage(Stage):
    """Starts no process but the readers of streams: each costs a second or two of imports."""

    @asynccontextmanager
    async def worker(self, host: BenchHost) -> AsyncIterator[WorkerProcess]:
        async with host.worker(runner_paths=(RUNNERS,)):
            yield ThisProcess()

    @asynccontextmanager
    async def bare_worker(self, host: BenchHost) -> AsyncIterator[WorkerProcess]:
        async with bare_worker(self.client, host.bare_queue):
            yield ThisProcess()

    @asynccontextmanager
    async def api(self, host: BenchHost) -> AsyncIterator[ServedApi]:
        dependencies = ApiDependencies(
            engine=self.engine,
            database_url=self.servers.database_url,
            temporal=self.client,
            task_queue=host.task_queue,
            version="0",
        )
        server = ApiServer(build_app(dependencies), host="127.0.0.1", port=0)
        serving = asyncio.create_task(server.serve())
        await eventually(lambda: server.started or serving.done())
        try:
            yield ServedApi(server.port, await self.make_key(host))
        finally:
            server.should_exit = True
            await serving


@pytest.fixture
async def stage(
    data_directory: DataDirectory,
    database_url: str,
    new_database_url: Callable[[], Awaitable[str]],
    temporal_address: str,
) -> AsyncIterator[Stage]:
    """A stage on a database of its own."""
    servers = Servers(data_directory, database_url, lambda _name: new_database_url(), temporal_address, os.getpid())
    async with InProcessStage.on(servers, QUICK, lambda _news: None) as stage:
        yield stage
