"""Ends of the example assistant that it did not choose: cancelled, killed (INV-8, P-T2, F-16)."""

import os
import signal

import pytest

from tests.eventually import eventually
from tests.examples.assistant import SEPARATE, Assistant, Hanging, processes_in, says


async def streaming(assistant: Assistant, hanging: Hanging) -> str:
    """Start a run whose model hangs in the middle of its answer; returns its id once that is seen."""
    await assistant.put()
    assistant.stub.behave = hanging
    run_id = (await assistant.start("Hello")).run_id

    async def is_seen() -> bool:
        return len(await assistant.deltas(run_id)) == 3

    await eventually(is_seen, within_seconds=30)
    return run_id


def program_of(assistant: Assistant) -> int:
    """Return the process of the runner, which is not its guardian."""
    (pid,) = [
        pid
        for pid, command in processes_in(assistant.host.program_folder).items()
        if "guardian" not in command and "runhost.sdk.program" in command
    ]
    return pid


async def test_cancel_in_the_middle_of_a_stream_reaches_the_model(assistant: Assistant) -> None:
    """F-16, INV-8: the run is cancelled, its model is let go, and no process is left."""
    hanging = Hanging()
    run_id = await streaming(assistant, hanging)
    working = processes_in(assistant.host.program_folder)
    assert bool(working) == (assistant.runner_id == SEPARATE)

    await assistant.client.cancel_run(run_id, reason="enough")
    run = await assistant.ended(run_id)

    assert (run.status, run.status_code) == ("cancelled", "cancelled")
    await eventually(lambda: hanging.left == 1)
    assert processes_in(assistant.host.program_folder) == {}
    assert [row.data.get("residual") for row in await assistant.ledger(run_id, "host.attempt_ended")] == [None]
    assert await assistant.answers() == ["one two three "]
    calls = await assistant.audited(run_id, "invoke_llm_stream_events")
    assert calls[-1].result == "cancelled"


@pytest.mark.parametrize("assistant", [pytest.param(SEPARATE, id="separate")], indirect=True)
async def test_killed_runner_fails_its_run_and_leaves_nothing(assistant: Assistant) -> None:
    """The process of the runner, by `kill -9`: a clear end, and the next run is unaffected."""
    hanging = Hanging()
    run_id = await streaming(assistant, hanging)

    os.kill(program_of(assistant), signal.SIGKILL)
    run = await assistant.ended(run_id)

    assert (run.status, run.status_code) == ("failed", "runner.error")
    assert "SIGKILL" in str(run.status_reason)
    await eventually(lambda: hanging.left == 1)
    assert processes_in(assistant.host.program_folder) == {}
    assert await assistant.deltas(run_id) == ["one ", "two ", "three "]
    assistant.stub.behave = says("I am back.")
    assert (await assistant.say("Hello?")).status == "completed"


async def test_run_that_is_taken_everything_ends_at_its_next_call(assistant: Assistant) -> None:
    """D-15: revoked in the middle of an answer."""
    hanging = Hanging()
    run_id = await streaming(assistant, hanging)

    await assistant.client.revoke_grant(run_id, "run")
    run = await assistant.ended(run_id)

    assert (run.status, run.status_code) == ("failed", "assistant.unauthorized")
    await eventually(lambda: hanging.left == 1)
