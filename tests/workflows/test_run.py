"""A run from its accepted event to its settled end."""

from tests.fixtures.host import WorkingHost


async def test_completed_run_has_contiguous_ledger_and_transcript(working_host: WorkingHost) -> None:
    async with working_host.worker():
        run = await working_host.finish(
            [{"delta": "Hel"}, {"delta": "lo"}, {"message": "Hello"}, {"completed": "stop"}]
        )
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
