"""Applications, servers, and callers of them.

Most tests share one application over one database and have a workspace each, which is all that keeps two
tenants apart anyway. Tests that break something make an application of their own with ``new_host``.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio.client import Client

from api.app import ApiDependencies, build_app
from api.auth import Scope
from api.server import ApiServer
from api.services import Services
from stores.driver import driver_pool
from stores.engine import build_engine
from stores.keys import KeyStore, new_secret
from tests.api.fake_tools import FakeTools
from tests.api.ledger_writer import LedgerWriter
from tests.eventually import eventually
from tests.fixtures.databases import TestDatabases

RUNNER = "plugin:runhost/scripted/default"


@dataclass
class Host:
    """An application, and callers from one workspace. ``client`` may do everything there."""

    app: FastAPI
    dependencies: ApiDependencies
    stack: AsyncExitStack
    server: ApiServer | None = None
    workspace: str = field(default_factory=lambda: f"ws-{uuid.uuid4().hex}")
    client: httpx.AsyncClient = field(init=False)
    pool: asyncpg.Pool = field(init=False)

    @property
    def port(self) -> int:
        assert self.server is not None
        return self.server.port

    @property
    def engine(self) -> AsyncEngine:
        return self.dependencies.engine

    @property
    def services(self) -> Services:
        return self.app.state.services

    async def key(self, scopes: Sequence[str] = tuple(Scope), workspace: str | None = None, **more: Any) -> str:
        """Make a key, of this workspace unless told otherwise."""
        secret = new_secret()
        async with self.engine.begin() as connection:
            await KeyStore(connection).register(
                secret, workspace_id=workspace or self.workspace, name="test", scopes=list(scopes), **more
            )
        return secret

    async def caller(self, scopes: Sequence[str] = tuple(Scope)) -> httpx.AsyncClient:
        """Return a client of this workspace."""
        return await self.bearer(await self.key(scopes))

    async def stranger(self) -> httpx.AsyncClient:
        """Return a client of another workspace that may do everything there."""
        return await self.bearer(await self.key(workspace=f"other-{uuid.uuid4().hex}"))

    async def bearer(self, secret: str | None) -> httpx.AsyncClient:
        """Return a client with this key; it goes through the server if there is one."""
        address, transport = "http://host", httpx.ASGITransport(self.app)
        if self.server is not None:
            address = f"http://127.0.0.1:{self.port}"
            transport = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None))
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        client = httpx.AsyncClient(transport=transport, base_url=address, headers=headers, timeout=30)
        return await self.stack.enter_async_context(client)

    async def agent(self, agent_id: str = "echo", client: httpx.AsyncClient | None = None, **more: Any) -> None:
        answer = await (client or self.client).put(f"/v1/agents/{agent_id}", json={"runner_id": RUNNER} | more)
        assert answer.status_code == 200, answer.text

    async def binding(self, binding_id: str = "all", agent_id: str = "echo", **more: Any) -> None:
        answer = await self.client.put(f"/v1/bindings/{binding_id}", json={"agent_id": agent_id} | more)
        assert answer.status_code == 200, answer.text

    async def writer(self, run_id: str | None = None, *, announces: bool = True) -> LedgerWriter:
        """Open an attempt of a run, of a new one unless told otherwise, and return what writes its ledger."""
        if run_id is None:
            run_id = str((await self.run())["run_id"])
        return await LedgerWriter(self.engine, self.pool, run_id, announces=announces).open()

    async def run(self, **more: Any) -> dict[str, Any]:
        """Create a run of agent ``echo``; nobody works for it."""
        await self.agent()
        answer = await self.client.post("/v1/runs", json={"agent_id": "echo"} | more)
        assert answer.status_code == 201, answer.text
        return answer.json()


def event(event_id: str = "e1", **more: Any) -> dict[str, Any]:
    """Return a message event as it is posted."""
    return {
        "event_id": event_id,
        "event_type": "message.received",
        "source": "platform",
        "conversation_id": "c1",
        "input": {"text": "hello"},
        "delivery": {"surface": "chat"},
    } | more


NewHost = Callable[..., Awaitable[Host]]


def assemble(stack: AsyncExitStack, database_url: str, client: Client, **more: Any) -> Host:
    """Build an application; its lifespan is the caller's to start. ``more`` are `ApiDependencies`."""
    engine = build_engine(database_url, pool_size=10, application_name="test-api")
    stack.push_async_callback(engine.dispose)
    wired = {
        "engine": engine,
        "database_url": database_url,
        "temporal": client,
        "task_queue": f"test-{uuid.uuid4().hex}",
        "version": "0.0.1",
        "tools": FakeTools(),
    }
    dependencies = ApiDependencies(**wired | more)
    return Host(build_app(dependencies), dependencies, stack)


async def start(host: Host) -> Host:
    """Start the application in process, and give it a caller."""
    await host.stack.enter_async_context(host.app.router.lifespan_context(host.app))
    return await equip(host)


async def serve(host: Host) -> Host:
    """Start the application behind a server on a port of its own, and give it a caller."""
    host.server = server = ApiServer(host.app, host="127.0.0.1", port=0)
    task = asyncio.create_task(server.serve())

    async def stop() -> None:
        server.should_exit = True
        await task

    host.stack.push_async_callback(stop)
    await eventually(lambda: server.started or task.done())
    await host.services.hub.listening()
    return await equip(host)


async def equip(host: Host) -> Host:
    """Give a started application a caller and a pool for its ledgers."""
    host.client = await host.caller()
    pool = driver_pool(host.dependencies.database_url, size=5, application_name="test-journal")
    host.pool = await host.stack.enter_async_context(pool)
    return host


@asynccontextmanager
async def visitor(shared: Host) -> AsyncIterator[Host]:
    """A workspace of its own in a shared application."""
    async with AsyncExitStack() as stack:
        host = Host(shared.app, shared.dependencies, stack, shared.server)
        host.client, host.pool = await host.caller(), shared.pool
        yield host


@pytest.fixture(scope="session")
async def shared_database_url(databases: TestDatabases, migrated_template: str) -> AsyncIterator[str]:
    """A database for all tests that only add to it."""
    name = await databases.create(migrated_template)
    yield databases.url(name)
    await databases.drop(name)


@pytest.fixture(scope="session")
async def shared_host(shared_database_url: str, temporal_client: Client) -> AsyncIterator[Host]:
    async with AsyncExitStack() as stack:
        yield await start(assemble(stack, shared_database_url, temporal_client))


@pytest.fixture(scope="session")
async def shared_server(shared_database_url: str, temporal_client: Client) -> AsyncIterator[Host]:
    async with AsyncExitStack() as stack:
        yield await serve(assemble(stack, shared_database_url, temporal_client))


@pytest.fixture
async def host(shared_host: Host) -> AsyncIterator[Host]:
    """A workspace of its own in the shared application."""
    async with visitor(shared_host) as host:
        yield host


@pytest.fixture
async def server(shared_server: Host) -> AsyncIterator[Host]:
    """A workspace of its own in the shared application behind a real server, for streams."""
    async with visitor(shared_server) as host:
        yield host


@pytest.fixture
async def replica(host: Host, temporal_client: Client) -> AsyncIterator[Host]:
    """Another application over the shared database, with a caller of the same workspace as ``host``."""
    async with AsyncExitStack() as stack:
        other = assemble(stack, host.dependencies.database_url, temporal_client)
        other.workspace = host.workspace
        yield await start(other)


@pytest.fixture
async def new_host(database_url: str, temporal_client: Client) -> AsyncIterator[NewHost]:
    """Factory of applications over a database of this test. ``more`` are `ApiDependencies`."""
    async with AsyncExitStack() as stack:

        async def make(**more: Any) -> Host:
            return await start(assemble(stack, database_url, temporal_client, **more))

        yield make


@pytest.fixture
async def new_server(database_url: str, temporal_client: Client) -> AsyncIterator[NewHost]:
    """Factory of servers over a database of this test."""
    async with AsyncExitStack() as stack:

        async def make(**more: Any) -> Host:
            return await serve(assemble(stack, database_url, temporal_client, **more))

        yield make
