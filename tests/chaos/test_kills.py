"""`kill -9` of every part in the middle of a run: the run ends, and nothing acknowledged is missing."""

import os
import signal
from typing import Any

from tests.chaos.stack import Stack

# Six seconds of streaming: long enough to be hit in the middle.
SLOW: list[Any] = [*([{"delta": "tick "}, {"pause": 0.2}] * 30), {"completed": "stop"}]
COMPLETED: list[Any] = [{"message": "Hello"}, {"completed": "stop"}]


def is_contiguous(rows: list[dict[str, Any]]) -> bool:
    return [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))


async def test_killed_worker_is_replaced_by_another_with_attempt_2(stack: Stack) -> None:
    """P-29."""
    run_id = await stack.send(SLOW)
    await stack.streaming(run_id)
    killed = await stack.worker_of(run_id)
    before = await stack.ledger(run_id)
    os.kill(killed, signal.SIGKILL)
    run = await stack.ended(run_id)
    rows = await stack.ledger(run_id)
    assert run["status"] == "completed"
    assert is_contiguous(rows)
    assert rows[: len(before)] == before
    assert await stack.worker_of(run_id) != killed
    attempts = (await stack.request("GET", f"/v1/runs/{run_id}/attempts"))["items"]
    assert [(attempt["attempt"], attempt["outcome"]) for attempt in attempts] == [(1, "lost"), (2, "completed")]
    items = (await stack.request("GET", "/v1/conversations/c1/transcript"))["items"]
    assert [item["role"] for item in items if item["metadata"]["run_id"] == run_id] == ["assistant", "user"]
    await stack.add_worker()


async def test_killed_api_loses_nothing_that_it_acknowledged(stack: Stack) -> None:
    run_id = await stack.send(SLOW)
    await stack.streaming(run_id)
    stack.api.kill()
    await stack.api.wait()
    await stack.api.start()
    assert (await stack.ended(run_id))["status"] == "completed"
    assert is_contiguous(await stack.ledger(run_id))


async def test_killed_temporal_ends_the_run_after_its_restart(stack: Stack) -> None:
    run_id = await stack.send(SLOW)
    await stack.streaming(run_id)
    stack.temporal.kill()
    await stack.temporal.wait()
    await stack.temporal.start()
    assert (await stack.ended(run_id))["status"] == "completed"
    assert is_contiguous(await stack.ledger(run_id))


async def test_killed_postgres_interrupts_no_attempt(stack: Stack) -> None:
    run_id = await stack.send(SLOW)
    seen = await stack.streaming(run_id)
    stack.postgres.kill()
    await stack.postgres.wait()
    await stack.postgres.start()
    run = await stack.ended(run_id)
    rows = await stack.ledger(run_id)
    assert (run["status"], run["current_attempt"]) == ("completed", 1)
    assert is_contiguous(rows)
    assert len(rows) > seen
    assert sum(row["type"] == "message.delta" for row in rows) == 30


async def test_inv_1_event_accepted_without_temporal_is_run_when_it_is_back(stack: Stack) -> None:
    """P-18: message stored, so there is a run."""
    await stack.request("PUT", "/v1/agents/a1", json=stack.agent(COMPLETED))
    stack.temporal.kill()
    await stack.temporal.wait()
    run_id = await stack.post_message()
    assert (await stack.run(run_id))["status"] == "created"
    await stack.temporal.start()
    assert (await stack.ended(run_id))["status"] == "completed"


async def test_stopped_worker_hands_its_run_over(stack: Stack) -> None:
    run_id = await stack.send(SLOW)
    await stack.streaming(run_id)
    os.kill(await stack.worker_of(run_id), signal.SIGTERM)
    assert (await stack.ended(run_id))["status"] == "completed"
    assert (await stack.run(run_id))["current_attempt"] == 2
    await stack.add_worker()
