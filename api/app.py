"""The application, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from api.acceptance import Acceptance
from api.boundary import Boundary
from api.cancellation import Cancellation
from api.metrics import Metrics
from api.problems import ProblemDocument, answer_problem
from api.routes import agents, artifacts, bindings, conversations, events, health, ledger, runners, runs
from api.routes.responses import PROBLEM_SCHEMA
from api.services import ApiDependencies, Services
from api.streams import StreamHub
from stores.cursors import CursorSigner
from stores.host_secrets import CURSORS, shared_secret

__all__ = ["ApiDependencies", "build_app"]

_SECURITY = "bearer"


def build_app(dependencies: ApiDependencies) -> FastAPI:
    """Return the application. It reads no settings and opens nothing before its lifespan starts."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with _services(dependencies, metrics) as services:
            app.state.services = services
            yield

    app = FastAPI(
        title="runhost",
        version=dependencies.version,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[Middleware(Boundary, metrics=metrics, max_body_bytes=dependencies.max_body_bytes)],
        exception_handlers={RequestValidationError: answer_problem, HTTPException: answer_problem},
    )
    for part in (events, runs, ledger, conversations, artifacts, agents, bindings, runners, health):
        app.include_router(part.router)
    app.openapi = lambda: _openapi(app)
    return app


@asynccontextmanager
async def _services(dependencies: ApiDependencies, metrics: Metrics) -> AsyncIterator[Services]:
    engine, temporal = dependencies.engine, dependencies.temporal
    async with engine.begin() as connection:
        cursors = CursorSigner(await shared_secret(connection, CURSORS))
    acceptance = Acceptance(
        engine,
        temporal,
        task_queue=dependencies.task_queue,
        start_timeout_seconds=dependencies.start_timeout_seconds,
        metrics=metrics,
    )
    cancellation = Cancellation(engine, temporal, timeout_seconds=dependencies.start_timeout_seconds)
    async with StreamHub(engine, dependencies.database_url, metrics) as hub:
        yield Services(dependencies, metrics, hub, acceptance, cancellation, cursors)
        await acceptance.drain()


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with what FastAPI cannot know: problem documents, and the key."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        components = schema["components"]
        problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"] |= problem.pop("$defs") | {PROBLEM_SCHEMA: problem}
        components["securitySchemes"] = {_SECURITY: {"type": "http", "scheme": "bearer"}}
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["security"] = [{_SECURITY: []}] if path.startswith("/v1/") else []
        app.openapi_schema = schema
    return app.openapi_schema
