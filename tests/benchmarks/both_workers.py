"""``python -m tests.benchmarks.both_workers BARE_QUEUE``: a worker for runs and one for bare workflows.

In one process, so that one kill loses both at the same moment. Settings come from RUNHOST_ variables.
"""

import asyncio
import os
import signal
import sys
from datetime import timedelta

from runhost.cli.connections import engine_for, temporal_for
from runhost.cli.running_worker import WorkerOptions, running_worker
from runhost.cli.startup import start_process
from tests.benchmarks.bare import bare_worker
from tests.benchmarks.notes import note


async def serve(bare_queue: str) -> None:
    """Work until SIGTERM."""
    settings = start_process()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    client, engine = await temporal_for(settings, "worker"), engine_for(settings, "worker")
    options = WorkerOptions(
        task_queue=settings.task_queue, runner_paths=tuple(settings.runner_paths), graceful_shutdown=timedelta(0)
    )
    url = settings.database_url.get_secret_value()
    try:
        async with running_worker(client, engine, url, options), bare_worker(client, bare_queue):
            note("working", str(os.getpid()))
            await stop.wait()
    finally:
        await engine.dispose()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
