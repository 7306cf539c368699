"""What a run is compared with: a workflow that does nothing but one activity, on the same server.

``python -m tests.benchmarks.bare ADDRESS TASK_QUEUE`` is a worker for it in a process of its own.
"""

import asyncio
import signal
import sys
import uuid
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.worker import PollerBehaviorAutoscaling, Worker

with workflow.unsafe.imports_passed_through():
    from runhost.cli.running_worker import WorkerOptions
    from tests.benchmarks.notes import note
    from workflows.client import connect

BEATS_PER_TIMEOUT = 3
LASTS_AT_MOST = timedelta(hours=1)


@activity.defn(name="bare.no_op")
async def no_op(key: str) -> None:
    """Note the start and end."""
    note("started", key)


@activity.defn(name="bare.hold")
async def hold(key: str) -> None:
    """Note the start, then wait until cancelled, proving life as a run's activity does."""
    note("started", key)
    timeout = activity.info().heartbeat_timeout or timedelta(seconds=30)
    while True:
        activity.heartbeat()
        await asyncio.sleep(timeout.total_seconds() / BEATS_PER_TIMEOUT)


@workflow.defn(name="Bare")
class BareWorkflow:
    """One activity: it does nothing, or waits where a heartbeat timeout is given."""

    @workflow.run
    async def run(self, heartbeat_timeout_seconds: float) -> None:
        """Execute it under the workflow's own id."""
        key = workflow.info().workflow_id
        if not heartbeat_timeout_seconds:
            await workflow.execute_activity(no_op, key, start_to_close_timeout=LASTS_AT_MOST)
            return
        await workflow.execute_activity(
            hold,
            key,
            start_to_close_timeout=LASTS_AT_MOST,
            heartbeat_timeout=timedelta(seconds=heartbeat_timeout_seconds),
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1)),
        )


async def start_bare(
    client: Client, task_queue: str, heartbeat_timeout_seconds: float = 0
) -> WorkflowHandle[BareWorkflow, None]:
    """Start one; its id is the key of its notes."""
    return await client.start_workflow(
        BareWorkflow.run,
        heartbeat_timeout_seconds,
        id=f"bare-{uuid.uuid4().hex}",
        task_queue=task_queue,
        request_eager_start=True,
    )


def bare_worker(client: Client, task_queue: str) -> AbstractAsyncContextManager[Worker]:
    """Return a worker with the settings that a worker for runs has."""
    options = WorkerOptions(graceful_shutdown=timedelta(0))
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[BareWorkflow],
        activities=[no_op, hold],
        max_cached_workflows=options.max_cached_workflows,
        max_concurrent_activities=options.max_open_runs,
        graceful_shutdown_timeout=options.graceful_shutdown,
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(),
    )


async def serve(address: str, task_queue: str) -> None:
    """Work until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with bare_worker(await connect(address), task_queue):
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
