"""What the routes work with; built once per application and handed down."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.requests import Request
from temporalio.client import Client

from api.acceptance import Acceptance
from api.cancellation import Cancellation
from api.metrics import Metrics
from api.streams import StreamHub
from api.tool_refresh import ToolRefresh
from host_api.gate import HostApi
from host_api.limits import CallLimits
from providers.models import ModelProvider, NoModels
from providers.tools import NoTools, ToolProvider
from stores.cursors import CursorSigner
from stores.file_root import FileRoot

DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class ApiDependencies:
    """What an entry point gives to the API.

    Attributes:
        engine: The database.
        database_url: The same database, for the one connection that listens.
        temporal: The engine of runs; may connect with its first call, so that the API starts without it.
        task_queue: Where run workflows are started.
        version: Version of the host.
        max_body_bytes: Larger bodies are refused, but for those that carry files.
        start_timeout_seconds: How long an accepted run may take to be started before the maintenance
            schedule is left to do it, and how long a cancel may take to be accepted.
        host_api_connections: Database connections for the calls of runners, besides those of the engine.
        call_limits: How often a run may call the host, and how much at once.
        file_root: Folder that file artifacts lie in; None where there are none.
        models: Calls models.
        tools: Talks to tool servers.
    """

    engine: AsyncEngine
    database_url: str = field(repr=False)
    temporal: Client
    task_queue: str
    version: str
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    start_timeout_seconds: float = 2.0
    host_api_connections: int = 10
    call_limits: CallLimits = field(default_factory=CallLimits)
    file_root: Path | None = None
    models: ModelProvider = field(default_factory=NoModels)
    tools: ToolProvider = field(default_factory=NoTools)


@dataclass(frozen=True)
class Services:
    """What a running application works with."""

    dependencies: ApiDependencies
    metrics: Metrics
    hub: StreamHub
    acceptance: Acceptance
    cancellation: Cancellation
    cursors: CursorSigner
    host_api: HostApi

    @property
    def engine(self) -> AsyncEngine:
        """The database, for what writes."""
        return self.dependencies.engine

    @cached_property
    def reads(self) -> AsyncEngine:
        """The database, for what reads: each statement on its own, which spares the round trips of a transaction."""
        return self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @cached_property
    def files(self) -> FileRoot | None:
        """The folder of file artifacts."""
        root = self.dependencies.file_root
        return None if root is None else FileRoot(root)

    @cached_property
    def tool_refresh(self) -> ToolRefresh:
        """Asks tool servers what they offer."""
        return ToolRefresh(self.engine, self.dependencies.tools)


def services_of(request: Request) -> Services:
    """Return the services of the application that serves ``request``."""
    services: Services = request.app.state.services
    return services


async def _provide(request: Request) -> Services:
    # Asynchronous, like all dependencies here: FastAPI runs others in a thread, which costs more than most routes.
    return services_of(request)


Host = Annotated[Services, Depends(_provide)]


async def _provide_host_api(request: Request) -> HostApi:
    return services_of(request).host_api


HostCalls = Annotated[HostApi, Depends(_provide_host_api)]
