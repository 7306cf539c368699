"""The maintenance workflow, fired by a Temporal schedule."""

from datetime import timedelta

from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from activities.maintenance import MaintenanceActivities

SCHEDULE_ID = "runhost-maintenance"
# Half of what INV-8 allows a run to wait for an owner.
EVERY = timedelta(seconds=30)
# What was missed while Temporal was away needs no catching up: one firing sees everything.
CATCH_UP = timedelta(seconds=10)
STEP_TIMEOUT = timedelta(seconds=25)
# A step that fails is done by the next firing.
ONCE = RetryPolicy(maximum_attempts=1)


@workflow.defn(name="Maintenance")
class MaintenanceWorkflow:
    """Starts accepted runs that nobody started, and creates the ledger's partitions ahead of time.

    Fired every 30 seconds by the schedule ``runhost-maintenance``; a firing that meets a running one is
    skipped. Takes no messages. Two at once would do no harm.
    """

    @workflow.run
    async def run(self) -> None:
        """Do both, in this order."""
        await workflow.execute_local_activity_method(
            MaintenanceActivities.start_never_started, start_to_close_timeout=STEP_TIMEOUT, retry_policy=ONCE
        )
        await workflow.execute_local_activity_method(
            MaintenanceActivities.ensure_partitions, start_to_close_timeout=STEP_TIMEOUT, retry_policy=ONCE
        )


async def ensure_schedule(client: Client, *, task_queue: str) -> None:
    """Create the schedule where it is missing."""
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            MaintenanceWorkflow.run, id=SCHEDULE_ID, task_queue=task_queue, execution_timeout=2 * EVERY
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
    )
    try:
        await client.create_schedule(SCHEDULE_ID, schedule)
    except ScheduleAlreadyRunningError:
        return
