"""`runhost api`: the HTTP API."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from runhost.settings import Settings


def api() -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C. Settings come from RUNHOST_ variables.

    It starts and takes events while Temporal is away; their runs are started later.
    """
    from runhost.cli.startup import serve_until_stopped

    serve_until_stopped(serve)


async def serve(settings: "Settings") -> None:
    """Serve until the process is told to stop.

    Raises:
        typer.Exit: It could not start; the log says why.
    """
    import runhost
    from api.app import ApiDependencies, build_app
    from api.server import ApiServer
    from runhost.cli.connections import engine_for, temporal_for
    from runhost.cli.reaching_out import call_limits, open_providers

    engine = engine_for(settings, "api")
    try:
        async with open_providers(settings.mcp_stdio_commands) as providers:
            dependencies = ApiDependencies(
                engine=engine,
                database_url=settings.database_url.get_secret_value(),
                temporal=await temporal_for(settings, "api", lazy=True),
                task_queue=settings.task_queue,
                version=runhost.__version__,
                call_limits=call_limits(settings),
                file_root=settings.file_root,
                models=providers.models,
                tools=providers.tools,
            )
            server = ApiServer(build_app(dependencies), host=settings.api_host, port=settings.api_port)
            await server.serve()
    finally:
        await engine.dispose()
    if not server.started:
        raise typer.Exit(1)
