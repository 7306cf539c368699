"""Records a history of every exit path of a run: `python -m tests.replay.record`.

Run it once per released version, whose folder it fills. Recorded histories are never changed: they are what
open runs of that version look like to newer code (INV-11).
"""

import asyncio
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle

import runhost
from runhost.cli.migrate import upgrade
from runhost.embedded.data_directory import DataDirectory
from runhost.embedded.postgres import EmbeddedPostgres
from runhost.embedded.temporal import EmbeddedTemporal
from stores.engine import build_engine
from tests.eventually import eventually
from tests.fixtures.host import WorkingHost
from workflows.client import connect
from workflows.maintenance import MaintenanceWorkflow
from workflows.search_attributes import register

HISTORIES = Path(__file__).parent / "histories"
COMPLETED: list[Any] = [{"message": "Hello"}, {"completed": "stop"}]


async def record_all(host: WorkingHost, folder: Path) -> None:
    """Drive a run into every end and keep its history."""
    for name, scenario in SCENARIOS.items():
        handle = await scenario(host)
        history = await handle.fetch_history()
        (folder / f"{name}.json").write_text(history.to_json() + "\n")
        sys.stdout.write(f"{name}: {len(history.events)} events\n")


async def ended(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait for the end of a workflow, whatever it is."""
    with suppress(WorkflowFailureError):
        await handle.result()


async def plain(host: WorkingHost, script: list[Any], **config: Any) -> WorkflowHandle[Any, Any]:
    """Run a script to its end."""
    run = await host.new_run(script, **config)
    async with host.worker():
        handle = await host.start(run)
        await ended(handle)
    return handle


async def has_begun(host: WorkingHost, run_id: str) -> bool:
    """Say whether the runner has spoken."""
    return any(row.type == "message.delta" for row in await host.ledger(run_id))


async def cancelled(host: WorkingHost) -> WorkflowHandle[Any, Any]:
    """Cancel a run whose runner works."""
    run = await host.new_run([{"delta": "half"}, {"silence": True}])
    async with host.worker():
        handle = await host.start(run)

        await eventually(lambda: has_begun(host, run.run_id))
        await handle.cancel()
        await ended(handle)
    return handle


async def cancelled_before_start(host: WorkingHost) -> WorkflowHandle[Any, Any]:
    """Cancel a run before any worker has seen it."""
    handle = await host.start(await host.new_run(COMPLETED))
    await handle.cancel()
    async with host.worker():
        await ended(handle)
    return handle


async def worker_shut_down(host: WorkingHost) -> WorkflowHandle[Any, Any]:
    """Stop the worker in the middle; the next one goes on with attempt 2."""
    run = await host.new_run([{"delta": "a"}, {"pause": 2}, *COMPLETED])
    async with host.worker():
        handle = await host.start(run)

        await eventually(lambda: has_begun(host, run.run_id))
    async with host.worker():
        await handle.result()
    return handle


async def maintenance(host: WorkingHost) -> WorkflowHandle[Any, Any]:
    """Fire the maintenance workflow."""
    async with host.worker():
        handle = await host.client.start_workflow(
            MaintenanceWorkflow.run, id=f"maintenance-{uuid.uuid4()}", task_queue=host.task_queue
        )
        await handle.result()
    return handle


SCENARIOS: dict[str, Callable[[WorkingHost], Awaitable[WorkflowHandle[Any, Any]]]] = {
    "run_completed": lambda host: plain(host, COMPLETED),
    "run_failed": lambda host: plain(host, [{"failed": {"code": "my.code", "error": "no"}}]),
    "run_cancelled_by_runner": lambda host: plain(host, [{"failed": {"code": "cancelled", "error": "stop"}}]),
    "run_timeout": lambda host: plain(host, [{"silence": True}], runner_config={"timeout": 1}),
    "run_without_runner": lambda host: plain(host, [], runner_id="plugin:nobody/nothing/default"),
    "run_cancelled": cancelled,
    "run_cancelled_before_start": cancelled_before_start,
    "run_worker_shut_down": worker_shut_down,
    "maintenance": maintenance,
}


async def main() -> None:
    """Start a host and record."""
    folder = HISTORIES / runhost.__version__
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, DataDirectory(Path(temporary)) as directory:
        # Postgres runs under an account of its own.
        directory.path.chmod(0o755)
        postgres, temporal = EmbeddedPostgres(directory, durable=False), EmbeddedTemporal(directory)
        await postgres.start()
        await temporal.start()
        try:
            await asyncio.to_thread(upgrade, postgres.url())
            client = await connect(temporal.address, identity="recorder")
            await register(client)
            engine = build_engine(postgres.url(), pool_size=10, application_name="recorder")
            await record_all(WorkingHost(engine, postgres.url(), client=client, task_queue="recorded"), folder)
            await engine.dispose()
        finally:
            await temporal.stop()
            await postgres.stop()


if __name__ == "__main__":
    asyncio.run(main())
