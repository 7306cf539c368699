"""A run from its accepted event to its settled end (DESIGN 6 and 7)."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError

from activities.messages import RunOrder
from runhost.protocol import workflow_id_for
from stores.notifications import CONTROL_CHANNEL, notify
from stores.runs import RunStore
from tests.eventually import eventually
from tests.fixtures.host import WorkingHost, make_envelope
from workflows.run import AgentRunWorkflow
from workflows.search_attributes import STATUS

COMPLETED = [{"message": "Hello"}, {"completed": "stop"}]


async def temporal_status(host: WorkingHost, run_id: str) -> tuple[WorkflowExecutionStatus | None, str | None]:
    """Return how Temporal shows the run, and the type of its failure."""
    handle = host.client.get_workflow_handle(workflow_id_for(run_id))
    status = (await handle.describe()).status
    try:
        await handle.result()
    except WorkflowFailureError as error:
        return status, error.cause.type if isinstance(error.cause, ApplicationError) else type(error.cause).__name__
    return status, None


async def until_row(host: WorkingHost, run_id: str, type_: str) -> None:
    async def is_there() -> bool:
        return any(row.type == type_ for row in await host.ledger(run_id))

    await eventually(is_there)


async def test_completed_run_has_contiguous_ledger_and_transcript(working_host: WorkingHost) -> None:
    async with working_host.worker():
        run = await working_host.finish([{"delta": "Hel"}, {"delta": "lo"}, *COMPLETED])
    ledger = await working_host.ledger(run.run_id)
    assert run.status == "completed"
    assert [row.sequence for row in ledger] == list(range(1, len(ledger) + 1))
    assert [row.type for row in ledger] == [
        "host.attempt_started",
        "message.delta",
        "message.delta",
        "message.completed",
        "run.completed",
        "host.attempt_ended",
        "host.run_ended",
    ]
    assert [(item.role, item.content) for item in await working_host.transcript()] == [
        ("user", "hello"),
        ("assistant", "Hello"),
    ]
    assert await temporal_status(working_host, run.run_id) == (WorkflowExecutionStatus.COMPLETED, None)


@pytest.mark.parametrize(
    ("script", "status", "code", "failure"),
    [
        ([{"delta": "a"}, {"delta": "b"}, {"completed": "stop"}], "completed", None, None),
        ([{"completed": "stop"}], "failed", "runner.no_output", "RunFailed"),
        ([{"malformed": 42}], "failed", "runner.protocol", "RunFailed"),
        (
            [{"result": {"type": "message.completed", "data": {"nope": 1}}}, *COMPLETED],
            "completed",
            None,
            None,
        ),
        ([{"failed": {"code": "my.code", "error": "no"}}], "failed", "my.code", "RunFailed"),
        ([{"failed": {"code": "cancelled", "error": "stopped"}}], "cancelled", "cancelled", "RunCancelled"),
        ([{"delta": "x"}, {"crash": "boom"}], "failed", "runner.error", "RunFailed"),
        ([*COMPLETED, {"after_end": [{"delta": "late"}]}], "completed", None, None),
    ],
    ids=["streamed", "empty", "malformed", "one rejected", "failed", "cancels itself", "crash", "yields after end"],
)
async def test_behaviour_matrix(
    working_host: WorkingHost, script: list[Any], status: str, code: str | None, failure: str | None
) -> None:
    async with working_host.worker():
        run = await working_host.finish(script)
        assert (run.status, run.status_code) == (status, code)
        assert (await temporal_status(working_host, run.run_id))[1] == failure
    last = (await working_host.ledger(run.run_id))[-1]
    assert (last.type, last.data["status"]) == ("host.run_ended", status)
    assert run.finished_at is not None


async def test_run_without_runner_fails_with_a_clear_code(working_host: WorkingHost) -> None:
    async with working_host.worker():
        run = await working_host.finish(runner_id="plugin:nobody/nothing/default")
    assert (run.status, run.status_code) == ("failed", "runner.not_found")
    assert [row.type for row in await working_host.ledger(run.run_id)] == ["host.run_ended"]


async def test_deadline_ends_a_silent_run_as_timeout(working_host: WorkingHost) -> None:
    """P-25, P-T6."""
    async with working_host.worker():
        run = await working_host.finish([{"delta": "so far"}, {"silence": True}], runner_config={"timeout": 1})
        assert (await temporal_status(working_host, run.run_id))[1] == "RunTimeout"
    assert (run.status, run.status_code) == ("timeout", "runner.timeout")
    assert (await working_host.transcript())[-1].content == "so far"


async def test_blocking_runner_is_named_and_failed_while_another_goes_on(working_host: WorkingHost) -> None:
    """P-48."""
    async with working_host.worker():
        blocked = asyncio.create_task(working_host.finish([{"block": 30}], agent_id="blocks"))
        other = await working_host.new_run([{"delta": "tick"}, {"pause": 0.2}, *COMPLETED], "other")
        await (await working_host.start(other)).result()
        run = await blocked
    assert (await working_host.run(other.run_id)).status == "completed"
    assert (run.status, run.status_code) == ("failed", "runner.blocked")
    assert "scripted" in (run.status_reason or "")


async def test_flood_is_throttled_and_complete(working_host: WorkingHost) -> None:
    async with working_host.worker():
        run = await working_host.finish([{"flood": 100_000}, {"completed": "stop"}], runner_config={"timeout": 50})
    assert run.status == "completed"
    assert run.last_sequence == 100_000 + 4


@pytest.mark.parametrize("way", ["temporal", "notification"])
async def test_cancel_reaches_a_silent_runner(working_host: WorkingHost, way: str) -> None:
    """F-15."""
    async with working_host.worker():
        run = await working_host.new_run([{"delta": "half"}, {"silence": True}])
        handle = await working_host.start(run)
        await until_row(working_host, run.run_id, "message.delta")
        if way == "notification":
            await notify(working_host.engine, CONTROL_CHANNEL, f"cancel:{run.run_id}")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, CancelledError)
    run = await working_host.run(run.run_id)
    assert (run.status, run.status_code) == ("cancelled", "cancelled")
    assert run.cancel_requested_at is not None
    assert (await working_host.transcript())[-1].content == "half"


async def test_cancel_before_any_worker_ends_as_cancelled(working_host: WorkingHost) -> None:
    run = await working_host.new_run(COMPLETED)
    handle = await working_host.start(run)
    await handle.cancel()
    async with working_host.worker():
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert (await working_host.run(run.run_id)).status == "cancelled"


async def test_cancel_noted_before_the_start_is_obeyed(working_host: WorkingHost) -> None:
    run = await working_host.new_run(COMPLETED)
    async with working_host.engine.begin() as connection:
        await RunStore(connection).request_cancel(UUID(run.run_id), "changed my mind")
    async with working_host.worker():
        handle = await working_host.start(run)
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert (await working_host.run(run.run_id)).status == "cancelled"


async def test_late_cancel_does_not_undo_a_completed_run(working_host: WorkingHost) -> None:
    async with working_host.worker():
        run = await working_host.finish(COMPLETED)
        handle = working_host.client.get_workflow_handle(workflow_id_for(run.run_id))
        await handle.cancel()
        await handle.result()
    assert (await working_host.run(run.run_id)).status == "completed"


async def test_second_workflow_for_a_run_is_refused(working_host: WorkingHost) -> None:
    """DESIGN 7: the workflow id in the start form of the Temporal UI can be edited."""
    run = await working_host.new_run(COMPLETED)
    async with working_host.worker():
        impostor = await working_host.client.start_workflow(
            AgentRunWorkflow.run,
            RunOrder(run_id=run.run_id),
            id=f"impostor-{run.run_id}",
            task_queue=working_host.task_queue,
        )
        with pytest.raises(WorkflowFailureError) as failure:
            await impostor.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "WrongWorkflow"
    assert (await working_host.run(run.run_id)).status == "created"


async def test_completed_run_started_again_is_refused_and_changes_nothing(working_host: WorkingHost) -> None:
    """DESIGN 9: "Start Workflow Like This One"."""
    async with working_host.worker():
        run = await working_host.finish(COMPLETED)
        before = await working_host.ledger(run.run_id)
        again = await working_host.client.start_workflow(
            AgentRunWorkflow.run,
            RunOrder(run_id=run.run_id),
            id=workflow_id_for(run.run_id),
            task_queue=working_host.task_queue,
        )
        with pytest.raises(WorkflowFailureError) as failure:
            await again.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "RunAlreadyCompleted"
    assert await working_host.ledger(run.run_id) == before
    assert await working_host.run(run.run_id) == run


async def test_history_of_a_plain_run_is_small_and_shows_its_status(working_host: WorkingHost) -> None:
    """DESIGN 11: at most 16 events and 6 KB."""
    async with working_host.worker():
        run = await working_host.finish([{"delta": "Hello"}, *COMPLETED])
        handle = working_host.client.get_workflow_handle(workflow_id_for(run.run_id))
        history = await handle.fetch_history()
        described = await handle.describe()
    assert len(history.events) <= 16
    assert described.history_length == len(history.events)
    assert sum(event.ByteSize() for event in history.events) <= 6 * 1024
    assert described.typed_search_attributes.get(STATUS) == "completed"
    assert history.events[-1].event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED


async def test_run_accepted_while_nobody_could_start_it_is_started_by_maintenance(working_host: WorkingHost) -> None:
    """P-18, INV-8: the event is stored, so the run happens."""
    from activities import maintenance
    from workflows.maintenance import MaintenanceWorkflow

    run = await working_host.new_run(COMPLETED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "NEVER_STARTED_AFTER", maintenance.NEVER_STARTED_AFTER * 0)
        async with working_host.worker():
            for attempt in range(2):
                await working_host.client.execute_workflow(
                    MaintenanceWorkflow.run,
                    id=f"maintenance-{attempt}-{run.run_id}",
                    task_queue=working_host.task_queue,
                )

            async def is_completed() -> bool:
                return (await working_host.run(run.run_id)).status == "completed"

            await eventually(is_completed)


async def test_event_of_another_kind_may_complete_in_silence(working_host: WorkingHost) -> None:
    """D-24."""
    from stores.ingest import Ingest

    await working_host.put_agent(script=[{"completed": "stop"}])
    envelope = make_envelope(event_type="group.member_joined", input={})
    async with working_host.engine.begin() as connection:
        accepted = await Ingest(connection, working_host.workspace_id).accept_run(envelope, "a1", {})
    assert accepted.new_run is not None
    async with working_host.worker():
        await (await working_host.start(accepted.new_run)).result()
    assert (await working_host.run(accepted.new_run.run_id)).status == "completed"
