"""The run workflow."""

import asyncio
from datetime import UTC, datetime, timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

with workflow.unsafe.imports_passed_through():
    from activities.messages import (
        Ended,
        FinalizeOrder,
        Invocation,
        Prepared,
        Progress,
        RunOrder,
        Settled,
    )
    from activities.runner import RunnerActivities
    from activities.runs import RunActivities
    from runhost.protocol import RunFailureCode, RunStatus
    from workflows.search_attributes import STATUS

# Short database transactions. The database ends a statement well before Temporal gives the activity up.
CONTROL_TIMEOUT = timedelta(seconds=30)
CONTROL_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10))
# The activity keeps the deadline itself and needs this long at most to stop its runner and say so.
DEADLINE_GRACE = timedelta(seconds=60)
NO_DEADLINE = timedelta(days=365)
# Below one second Temporal waits a second all the same (TEMPORAL 6).
LOSS_RETRY_INTERVAL = timedelta(seconds=1)


@workflow.defn(name="AgentRun")
class AgentRunWorkflow:
    """One run, from its accepted event to its settled end.

    Started by the API when an event or a request has written the run, with the id `run-<run_id>`. Takes
    Temporal's cancel, from whoever sends it, and the query ``progress``. Ends when the run is settled:
    Completed; Canceled when a cancel took effect; Failed with type ``RunFailed``, ``RunTimeout`` or
    ``RunCancelled`` (the runner said so itself), so that operators find it.

    It never looks at its own identity and carries nothing that a user wrote: what happened stands in the
    ledger, and every step can be run again (DESIGN 7, TEMPORAL 15).
    """

    @workflow.init
    def __init__(self, order: RunOrder) -> None:
        self._order = order
        self._phase = "preparing"

    @workflow.run
    async def run(self, order: RunOrder) -> Settled:
        """Prepare, invoke the runner, settle."""
        ended = await self._execute()
        settled = await self._finalize(ended)
        return self._close(settled)

    @workflow.query
    def progress(self) -> Progress:
        """Say which step the run is in."""
        return Progress(run_id=self._order.run_id, phase=self._phase)

    async def _execute(self) -> Ended:
        try:
            prepared: Prepared = await workflow.execute_local_activity_method(
                RunActivities.prepare,
                self._order,
                start_to_close_timeout=CONTROL_TIMEOUT,
                retry_policy=CONTROL_RETRY,
            )
        except asyncio.CancelledError:
            return Ended(outcome=RunStatus.CANCELLED, code=RunFailureCode.CANCELLED)
        if prepared.invocation is None:
            return prepared.ended or Ended(outcome=RunStatus.FAILED, code=RunFailureCode.HOST_ERROR)
        self._enter("running", "The runner works. A retry starts it again; the ledger keeps what it said so far.")
        return await self._invoke(prepared.invocation)

    async def _invoke(self, invocation: Invocation) -> Ended:
        budget = _time_left(invocation.deadline_at)
        handle = workflow.start_activity_method(
            RunnerActivities.invoke,
            self._order,
            task_queue=invocation.task_queue,
            schedule_to_close_timeout=budget,
            heartbeat_timeout=timedelta(seconds=invocation.heartbeat_timeout_seconds),
            # The activity reports every end of the runner as a result. What is left to retry is the loss of
            # a worker (DESIGN 9).
            retry_policy=RetryPolicy(initial_interval=LOSS_RETRY_INTERVAL, maximum_attempts=invocation.max_attempts),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        try:
            # Shielded, so that a cancel is told to the worker before Temporal's own, slower way.
            return await asyncio.shield(handle)
        except asyncio.CancelledError:
            if not handle.done():
                await self._tell_cancel()
                handle.cancel()
            # Where both came at once, the result counts (TEMPORAL 15, pitfall 4).
            return await _end_of(handle)
        except ActivityError:
            return await _end_of(handle)

    async def _tell_cancel(self) -> None:
        self._enter("cancelling", "A cancel was asked for; the runner is being stopped.")
        await workflow.execute_local_activity_method(
            RunActivities.tell_cancel,
            self._order,
            start_to_close_timeout=CONTROL_TIMEOUT,
            retry_policy=CONTROL_RETRY,
        )

    async def _finalize(self, ended: Ended) -> Settled:
        self._enter("settling", "The end of the run is being written.")
        finalize = asyncio.ensure_future(
            workflow.execute_local_activity_method(
                RunActivities.finalize,
                FinalizeOrder(
                    run_id=self._order.run_id,
                    ended=ended,
                    is_cancel_requested=workflow.cancellation_reason() is not None,
                ),
                start_to_close_timeout=CONTROL_TIMEOUT,
                retry_policy=CONTROL_RETRY,
            )
        )
        while not finalize.done():
            try:
                await asyncio.shield(finalize)
            except asyncio.CancelledError:
                continue
        return finalize.result()

    def _close(self, settled: Settled) -> Settled:
        """Close as the run ended. Nothing is awaited from here on, so no workflow task lies behind the end."""
        workflow.upsert_search_attributes([STATUS.value_set(settled.status)])
        self._enter("ended", f"The run has ended: {settled.status} {settled.code or ''}".strip())
        if settled.status == RunStatus.COMPLETED:
            return settled
        if settled.status == RunStatus.CANCELLED and workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError
        raise ApplicationError(
            f"The run ended as {settled.status}: {settled.code or 'no code'}. The ledger says why.",
            type=_FAILURE_TYPES[settled.status],
            non_retryable=True,
        )

    def _enter(self, phase: str, details: str) -> None:
        self._phase = phase
        workflow.set_current_details(details)


_FAILURE_TYPES = {
    RunStatus.FAILED: "RunFailed",
    RunStatus.TIMEOUT: "RunTimeout",
    RunStatus.CANCELLED: "RunCancelled",
}


async def _end_of(handle: workflow.ActivityHandle[Ended]) -> Ended:
    """Return how the invocation ended, whichever way Temporal tells it."""
    try:
        return await handle
    except FailureError as error:
        if workflow.cancellation_reason() is not None:
            return Ended(outcome=RunStatus.CANCELLED, code=RunFailureCode.CANCELLED)
        return _end_by(error.cause)


def _end_by(cause: BaseException | None) -> Ended:
    if isinstance(cause, ActivityTimeoutError):
        if cause.type == TimeoutType.HEARTBEAT:
            return Ended(outcome=RunStatus.FAILED, code=RunFailureCode.RUNNER_LOST, retryable=True)
        return Ended(outcome=RunStatus.TIMEOUT, code=RunFailureCode.RUNNER_TIMEOUT, retryable=True)
    if isinstance(cause, ApplicationError) and cause.type == "WorkerShutdown":
        return Ended(outcome=RunStatus.FAILED, code=RunFailureCode.RUNNER_LOST, retryable=True)
    return Ended(outcome=RunStatus.FAILED, code=RunFailureCode.HOST_ERROR)


def _time_left(deadline_at: float | None) -> timedelta:
    if deadline_at is None:
        return NO_DEADLINE
    left = datetime.fromtimestamp(deadline_at, UTC) - workflow.now()
    return max(left, timedelta(0)) + DEADLINE_GRACE
