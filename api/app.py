"""The application, put together."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from api.acceptance import Acceptance
from api.body_limits import BodyLimits
from api.boundary import Boundary
from api.cancellation import Cancellation
from api.metrics import Metrics
from api.problems import ProblemDocument, answer_problem
from api.routes import (
    accesses,
    agents,
    artifacts,
    authorization,
    bindings,
    conversations,
    events,
    files,
    health,
    host,
    knowledge,
    knowledge_documents,
    ledger,
    models,
    runners,
    runs,
    skills,
    tool_servers,
)
from api.routes.responses import PROBLEM_SCHEMA
from api.services import ApiDependencies, Services
from api.streams import StreamHub
from host_api.audit import AccessAudit
from host_api.errors import HostCallError
from host_api.gate import HostApi
from host_api.services import HostServices
from runhost.protocol.host_api import HOST_METHODS, MAX_REQUEST_BYTES
from stores.cursors import CursorSigner
from stores.driver import driver_pool
from stores.files import MAX_FILE_BYTES
from stores.host_secrets import CURSORS, shared_secret
from stores.knowledge_text import MAX_DOCUMENT_BYTES

__all__ = ["ApiDependencies", "build_app"]

_API_KEY, _RUN_TOKEN = "bearer", "runToken"


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
        middleware=[Middleware(Boundary, metrics=metrics, body_limits=_body_limits(dependencies))],
        exception_handlers={
            RequestValidationError: answer_problem,
            HTTPException: answer_problem,
            HostCallError: answer_problem,
        },
    )
    for part in (
        events,
        runs,
        ledger,
        authorization,
        accesses,
        conversations,
        artifacts,
        agents,
        bindings,
        runners,
        models,
        tool_servers,
        skills,
        files,
        knowledge,
        knowledge_documents,
        host,
        health,
    ):
        app.include_router(part.router)
    app.openapi = lambda: _openapi(app)
    return app


def _body_limits(dependencies: ApiDependencies) -> BodyLimits:
    """Return the limits. Files may be large, and calls of the host API that carry bytes say how large."""
    calls = {
        f"/v1/host/{name}": method.max_request_bytes
        for name, method in HOST_METHODS.items()
        if method.max_request_bytes > MAX_REQUEST_BYTES
    }
    return BodyLimits(
        dependencies.max_body_bytes, {"/v1/files/": MAX_FILE_BYTES, "/v1/knowledge-bases/": MAX_DOCUMENT_BYTES, **calls}
    )


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
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(StreamHub(engine, dependencies.database_url, metrics))
        pool = await stack.enter_async_context(
            driver_pool(
                dependencies.database_url,
                size=dependencies.host_api_connections,
                application_name="runhost host api",
            )
        )
        audit = await stack.enter_async_context(AccessAudit(pool))
        host_services = HostServices(
            engine,
            pool,
            cursors,
            dependencies.version,
            file_root=dependencies.file_root,
            models=dependencies.models,
            tools=dependencies.tools,
        )
        host_api = HostApi(host_services, audit, limits=dependencies.call_limits)
        yield Services(dependencies, metrics, hub, acceptance, cancellation, cursors, host_api)
        await acceptance.drain()


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with what FastAPI cannot know: problem documents, and the key."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        components = schema["components"]
        problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"] |= problem.pop("$defs") | {PROBLEM_SCHEMA: problem}
        components["securitySchemes"] = {
            _API_KEY: {"type": "http", "scheme": "bearer", "description": "An API key, see `runhost keys`."},
            _RUN_TOKEN: {"type": "http", "scheme": "bearer", "description": "The token of a run's current attempt."},
        }
        host.describe_params(schema)
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["security"] = _security_of(path)
        app.openapi_schema = schema
    return app.openapi_schema


def _security_of(path: str) -> list[dict[str, list[str]]]:
    if path.startswith(f"{host.router.prefix}/"):
        return [{_RUN_TOKEN: []}]
    return [{_API_KEY: []}] if path.startswith("/v1/") else []
