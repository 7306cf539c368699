"""What DESIGN 10 promises of the ledger."""

import asyncio
from typing import Any

import asyncpg
import pytest
from sqlalchemy import func, select, text

from activities.messages import Ended
from activities.settlement import settle
from runhost.protocol import HostEventType, RunStatus
from stores.attempts import AttemptStore
from stores.errors import RunTerminal, StaleAttempt
from stores.journal import AttemptEnd, Batch, JournalStore, LedgerRow
from stores.ledger import LedgerStore
from stores.runs import RunEnd, RunStore
from stores.tables import artifact, artifact_blob, event_log, runner_state, transcript
from tests.eventually import eventually
from tests.fixtures.host import OpenedRun

ARTIFACT = {"artifact_type": "file", "artifact_id": "art-1", "name": "a.txt", "content_base64": "aGVsbG8="}


async def count(run: OpenedRun, table: Any) -> int:
    async with run.host.engine.connect() as connection:
        return await connection.scalar(select(func.count()).select_from(table)) or 0


async def execute(run: OpenedRun, statement: str) -> None:
    async with run.host.engine.begin() as connection:
        await connection.execute(text(statement))


async def test_inv_3_ledger_is_contiguous_with_several_writers_and_a_follower_misses_nothing(
    opened_run: OpenedRun,
) -> None:
    journal = await opened_run.journal()
    engine, run_id = opened_run.host.engine, opened_run.run_id
    seen: list[int] = []
    written = asyncio.Event()

    async def follow() -> None:
        while True:
            is_last = written.is_set()
            async with engine.connect() as connection:
                after = seen[-1] if seen else 0
                rows = await LedgerStore(connection).tails({run_id: after}, limit=50)
            seen.extend(row["sequence"] for row in rows)
            if is_last and not rows:
                return

    async def append_host_rows() -> None:
        for _ in range(40):
            async with engine.begin() as connection:
                await LedgerStore(connection).append_host(run_id, HostEventType.CANCEL_REQUESTED, {})

    follower = asyncio.create_task(follow())
    hosts = [asyncio.create_task(append_host_rows()) for _ in range(2)]
    for number in range(400):
        await journal.add(opened_run.delta(str(number)))
        if number % 50 == 0:
            await journal.add(opened_run.message(str(number)))
    await journal.close(AttemptEnd("completed"))
    await asyncio.gather(*hosts)
    written.set()
    await follower
    total = 1 + 400 + 8 + 80 + 1
    assert seen == list(range(1, total + 1))
    assert [row.sequence for row in await opened_run.rows()] == seen


async def test_inv_4_killed_backend_leaves_all_or_nothing_and_the_commit_happens_once(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    await journal.add(opened_run.result("state.updated", {"scope": "actor", "key": "k", "value": 1}))
    url = opened_run.host.database_url.replace("+asyncpg", "")
    # Two connections: a transaction sees the list of activities as it was at its first look.
    blocker, observer = await asyncpg.connect(url), await asyncpg.connect(url)
    blocking = blocker.transaction()
    await blocking.start()
    # The commit's statement has written the ledger row by the time it waits for the transcript.
    await blocker.execute("LOCK TABLE transcript IN ACCESS EXCLUSIVE MODE")
    adding = asyncio.create_task(journal.add(opened_run.message("said once")))
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    pid = await eventually(lambda: observer.fetchval(waiting))
    await observer.execute("SELECT pg_terminate_backend($1)", pid)
    await eventually(lambda: observer.fetchval(f"{waiting} AND pid <> {pid}"))
    assert "message.completed" not in await opened_run.types()
    await blocking.commit()
    await adding
    await blocker.close()
    await observer.close()
    assert (await opened_run.types()).count("message.completed") == 1
    assert [item.content for item in await opened_run.host.transcript()] == ["hello", "said once"]


async def test_inv_4_answer_lost_after_the_commit_does_not_repeat_it(opened_run: OpenedRun) -> None:
    """The connection dies between the server's commit and the client's reading of it."""
    journal = await opened_run.journal()
    commit, tries = JournalStore.commit, []

    async def commit_and_lose(self: JournalStore, batch: Any) -> int | None:
        base = await commit(self, batch)
        tries.append(base)
        if len(tries) == 1:
            raise ConnectionResetError
        return base

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JournalStore, "commit", commit_and_lose)
        await journal.add(opened_run.message("said once"))
    assert len(tries) == 2
    assert await journal.close(AttemptEnd("completed")) == AttemptEnd("completed")
    assert await opened_run.types() == ["host.attempt_started", "message.completed", "host.attempt_ended"]
    assert len(await opened_run.host.transcript()) == 2


@pytest.mark.parametrize(
    ("table", "result"),
    [
        (event_log, ("artifact.created", ARTIFACT)),
        (transcript, ("message.completed", {"message": {"role": "assistant", "content": "x"}})),
        (runner_state, ("state.updated", {"scope": "actor", "key": "k", "value": 1})),
    ],
    ids=["event log", "transcript", "state"],
)
async def test_inv_4_failing_projection_takes_the_whole_commit_with_it(
    opened_run: OpenedRun, table: Any, result: tuple[str, dict[str, Any]]
) -> None:
    journal = await opened_run.journal()
    await execute(
        opened_run,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
    )
    await execute(
        opened_run, f"CREATE TRIGGER refuse BEFORE INSERT ON {table.name} FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    before = {name: await count(opened_run, name) for name in (artifact, artifact_blob, transcript, runner_state)}
    with pytest.raises(asyncpg.RaiseError):
        await journal.add(opened_run.result(*result))
    assert await opened_run.types() == ["host.attempt_started"]
    assert (await opened_run.host.run(str(opened_run.run_id))).last_sequence == 1
    assert before == {name: await count(opened_run, name) for name in before}


async def test_inv_5_replaced_attempt_changes_nothing(opened_run: OpenedRun) -> None:
    old = await opened_run.journal()
    await old.add(opened_run.delta("seen", usage={"prompt_tokens": 1}))
    await old.close(None)
    new = await opened_run.journal()
    # As many commits as the old one has made: only the fence tells the two apart.
    await new.add(opened_run.delta("new"))
    await new.close(None)
    before, run = await opened_run.rows(), await opened_run.host.run(str(opened_run.run_id))
    for result in (
        opened_run.message("late"),
        opened_run.result("state.updated", {"scope": "actor", "key": "k", "value": 1}),
        opened_run.result("artifact.created", ARTIFACT),
        opened_run.result("run.completed", {"finish_reason": "stop"}, usage={"prompt_tokens": 99}),
    ):
        with pytest.raises(StaleAttempt):
            await old.add(result)
    assert await opened_run.rows() == before
    assert await opened_run.host.run(str(opened_run.run_id)) == run
    assert await count(opened_run, runner_state) == await count(opened_run, artifact) == 0
    await new.add(opened_run.message("the new attempt goes on"))
    assert (await opened_run.rows())[-1].attempt == 2


async def test_inv_5_rows_of_a_lost_attempt_stay(opened_run: OpenedRun) -> None:
    lost = await opened_run.journal()
    await lost.add(opened_run.delta("half a sen"))
    await lost.close(None)
    await opened_run.open()
    assert [(row.type, row.attempt) for row in await opened_run.rows()] == [
        ("host.attempt_started", 1),
        ("message.delta", 1),
        ("host.attempt_ended", 1),
        ("host.attempt_started", 2),
    ]


async def test_inv_6_nothing_enters_after_the_end_of_the_attempt(opened_run: OpenedRun) -> None:
    opened = await opened_run.open()
    journal = opened_run.journal_of(opened)
    await journal.add(opened_run.message("done"))
    await journal.add(opened_run.result("run.completed", {"finish_reason": "stop"}))
    before = await opened_run.rows()
    await journal.add(opened_run.message("one more"))
    assert await journal.close(AttemptEnd("failed", "runner.error")) == AttemptEnd("completed")
    # Another writer of the attempt, which missed the end, meets the database's own check.
    with pytest.raises(RunTerminal):
        await opened_run.journal_of(opened).add(opened_run.message("and another"))
    commits = (await opened_run.host.load(opened_run.run_id)).attempt_commits
    batch = Batch(opened_run.run_id, opened.attempt, commits, [LedgerRow("message.delta", "{}", 99)])
    assert await JournalStore(opened_run.pool).commit(batch) is None
    assert await opened_run.rows() == before


async def test_inv_6_terminal_status_is_written_once(opened_run: OpenedRun) -> None:
    await opened_run.open()
    engine = opened_run.host.engine
    async with engine.begin() as connection:
        runs = RunStore(connection)
        await runs.settle(await runs.load(opened_run.run_id, lock=True), RunEnd(RunStatus.FAILED, "first"))
    before = await opened_run.rows()
    async with engine.begin() as connection:
        assert await AttemptStore(connection).open(opened_run.run_id, _other_execution()) == AttemptEnd(
            "failed", "first"
        )
        assert await RunStore(connection).request_cancel(opened_run.run_id, "too late") is None
        runs = RunStore(connection)
        with pytest.raises(RunTerminal):
            await runs.settle(await runs.load(opened_run.run_id, lock=True), RunEnd(RunStatus.COMPLETED))
    assert await opened_run.rows() == before
    assert (await opened_run.host.run(str(opened_run.run_id))).status_code == "first"


@pytest.mark.parametrize(
    ("seen", "own", "status"),
    [
        (Ended(outcome="cancelled", code="cancelled"), AttemptEnd("completed"), "completed"),
        (Ended(outcome="failed", code="runner.lost"), AttemptEnd("completed"), "completed"),
        (Ended(outcome="failed", code="runner.lost"), AttemptEnd("lost", "runner.lost"), "failed"),
        (Ended(outcome="timeout", code="runner.timeout"), None, "timeout"),
        (Ended(outcome="cancelled", code="cancelled"), None, "cancelled"),
    ],
    ids=["cancel came too late", "worker lost after the end", "all attempts lost", "deadline", "cancel"],
)
def test_inv_6_what_the_attempt_committed_counts(seen: Ended, own: AttemptEnd | None, status: str) -> None:
    assert settle(seen, own)[0].status == status


def _other_execution() -> Any:
    from stores.attempts import ActivityExecution

    return ActivityExecution("another-temporal-run", "1", 1, "test-worker")
