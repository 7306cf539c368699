"""What the routes work with; built once per application and handed down."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.requests import Request
from temporalio.client import Client

from api.acceptance import Acceptance
from api.cancellation import Cancellation
from api.metrics import Metrics
from api.streams import StreamHub
from stores.cursors import CursorSigner

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
        max_body_bytes: Larger bodies are refused.
        start_timeout_seconds: How long an accepted run may take to be started before the maintenance
            schedule is left to do it, and how long a cancel may take to be accepted.
    """

    engine: AsyncEngine
    database_url: str = field(repr=False)
    temporal: Client
    task_queue: str
    version: str
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    start_timeout_seconds: float = 2.0


@dataclass(frozen=True)
class Services:
    """What a running application works with."""

    dependencies: ApiDependencies
    metrics: Metrics
    hub: StreamHub
    acceptance: Acceptance
    cancellation: Cancellation
    cursors: CursorSigner

    @property
    def engine(self) -> AsyncEngine:
        """The database, for what writes."""
        return self.dependencies.engine

    @cached_property
    def reads(self) -> AsyncEngine:
        """The database, for what reads: each statement on its own, which spares the round trips of a transaction."""
        return self.engine.execution_options(isolation_level="AUTOCOMMIT")


def services_of(request: Request) -> Services:
    """Return the services of the application that serves ``request``."""
    services: Services = request.app.state.services
    return services


async def _provide(request: Request) -> Services:
    # Asynchronous, like all dependencies here: FastAPI runs others in a thread, which costs more than most routes.
    return services_of(request)


Host = Annotated[Services, Depends(_provide)]
