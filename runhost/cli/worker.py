"""`runhost worker`: workflows, control activities and the runners in process."""

import asyncio
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runhost.settings import Settings


def worker() -> None:
    """Execute runs until SIGTERM or Ctrl-C. Settings come from RUNHOST_ variables.

    A stop first lets runs go on for RUNHOST_GRACEFUL_SHUTDOWN; another worker takes over what is left.
    """
    from runhost.cli.startup import serve_until_stopped

    serve_until_stopped(serve)


async def serve(settings: "Settings") -> None:
    """Run one worker until the process is told to stop."""
    from runhost.cli.connections import engine_for, temporal_for
    from runhost.cli.reaching_out import call_limits
    from runhost.cli.running_worker import WorkerOptions, running_worker
    from workflows.search_attributes import register

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await temporal_for(settings, "worker")
    await register(client)
    engine = engine_for(settings, "worker")
    options = WorkerOptions(
        task_queue=settings.task_queue,
        runner_paths=tuple(settings.runner_paths),
        call_limits=call_limits(settings),
        file_root=settings.file_root,
        mcp_stdio_commands=tuple(settings.mcp_stdio_commands),
        max_cached_workflows=settings.max_cached_workflows,
        max_open_runs=settings.max_open_runs,
        graceful_shutdown=settings.graceful_shutdown,
        heartbeat_seconds=settings.heartbeat_interval.total_seconds(),
    )
    try:
        async with running_worker(client, engine, settings.database_url.get_secret_value(), options):
            await stop.wait()
    finally:
        await engine.dispose()
