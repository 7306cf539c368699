"""What the journal makes of what runners yield (PROTOCOL 7 and 8, D-22 to D-32)."""

import asyncio
import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from activities.commits import FLUSH_AFTER_SECONDS, FLUSH_ROWS
from runhost.protocol import EXCERPT_CHARACTERS, MAX_INLINE_ARTIFACT_BYTES, MAX_INLINE_TEXT_BYTES, MAX_RESULT_BYTES
from stores.artifacts import ArtifactStore
from stores.journal import AttemptEnd, Batch, JournalStore
from stores.tables import artifact, event_log, runner_state, transcript
from tests.eventually import eventually
from tests.fixtures.host import WORKSPACE, OpenedRun

COMPLETED = ("run.completed", {"finish_reason": "stop"})


async def rejections(run: OpenedRun) -> list[str]:
    return [str(row.data["reason"]) for row in await run.rows() if row.type == "host.result_rejected"]


async def test_delta_of_a_slow_runner_is_committed_without_company(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    await journal.add(opened_run.delta("alone"))

    async def is_committed() -> bool:
        return "message.delta" in await opened_run.types()

    await eventually(is_committed)


async def test_deltas_of_a_fast_runner_share_commits(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    for number in range(3 * FLUSH_ROWS):
        await journal.add(opened_run.delta(str(number)))
    await journal.close(None)
    rows = (await opened_run.rows())[1:]
    assert [row.data["chunk"]["content"] for row in rows] == [str(n) for n in range(3 * FLUSH_ROWS)]  # type: ignore[index, call-overload]
    # Rows of one commit share the time of their transaction.
    assert len({row.created_at for row in rows}) <= 4


async def test_delta_that_comes_during_a_commit_needs_no_other_to_be_committed(
    opened_run: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_go_on, commit = asyncio.Event(), asyncio.Event(), JournalStore.commit

    async def slow(self: JournalStore, batch: Batch) -> int | None:
        began.set()
        await may_go_on.wait()
        return await commit(self, batch)

    monkeypatch.setattr(JournalStore, "commit", slow)
    journal = await opened_run.journal()
    await journal.add(opened_run.delta("one"))
    await began.wait()
    await journal.add(opened_run.delta("two"))
    # Longer than the flush timer: it runs out while the first commit is under way.
    await asyncio.sleep(2 * FLUSH_AFTER_SECONDS)
    may_go_on.set()

    async def both_are_committed() -> bool:
        return (await opened_run.types()).count("message.delta") == 2

    await eventually(both_are_committed)


async def test_run_that_only_streamed_leaves_one_assistant_item(opened_run: OpenedRun) -> None:
    """F-6, D-25."""
    journal = await opened_run.journal()
    for text in ("Hel", "lo", "!"):
        await journal.add(opened_run.delta(text))
    await journal.add(opened_run.result(*COMPLETED))
    items = await opened_run.host.transcript()
    assert [(item.role, item.content) for item in items] == [("user", "hello"), ("assistant", "Hello!")]
    assert items[1].metadata["run_id"] == str(opened_run.run_id)


async def test_cumulative_chunks_replace_each_other(opened_run: OpenedRun) -> None:
    """D-26."""
    journal = await opened_run.journal()
    for text in ("Hel", "Hello"):
        chunk = {"role": "assistant", "content": text, "mode": "replace"}
        await journal.add(opened_run.result("message.delta", {"chunk": chunk}))
    await journal.add(opened_run.result(*COMPLETED))
    assert (await opened_run.host.transcript())[-1].content == "Hello"


async def test_text_streamed_before_a_cancel_stays(opened_run: OpenedRun) -> None:
    """P-9."""
    journal = await opened_run.journal()
    await journal.add(opened_run.delta("half an ans"))
    await journal.close(AttemptEnd("cancelled", "cancelled"))
    item = (await opened_run.host.transcript())[-1]
    assert (item.content, item.metadata["partial"]) == ("half an ans", True)


async def test_every_completed_message_is_an_item_and_the_last_is_not_said_twice(opened_run: OpenedRun) -> None:
    """D-25, C17, C18."""
    journal = await opened_run.journal()
    await journal.add(opened_run.message("one"))
    await journal.add(opened_run.message("two"))
    message = {"role": "assistant", "content": "two"}
    await journal.add(opened_run.result("run.completed", {"finish_reason": "stop", "message": message}))
    assert [item.content for item in await opened_run.host.transcript()] == ["hello", "one", "two"]


async def test_artifacts_are_shown_by_the_next_message(opened_run: OpenedRun) -> None:
    """H-F9."""
    journal = await opened_run.journal()
    content = base64.b64encode(b"report").decode()
    data = {"artifact_type": "file", "name": "r.txt", "mime_type": "text/plain", "content_base64": content}
    await journal.add(opened_run.result("artifact.created", data))
    await journal.add(opened_run.message("see the report"))
    row = next(row for row in await opened_run.rows() if row.type == "artifact.created")
    reference = row.artifact_refs[0]
    assert "content_base64" not in row.data
    assert (await opened_run.host.transcript())[-1].artifact_refs[0]["artifact_id"] == reference.artifact_id
    async with opened_run.host.engine.connect() as connection:
        assert await ArtifactStore(connection, WORKSPACE).read(reference.artifact_id, offset=0, length=99) == b"report"
        logged = (await connection.execute(select(event_log).where(event_log.c.source == "runner"))).mappings().one()
    assert (logged["event_type"], logged["sequence"]) == ("artifact.created", row.sequence)
    assert logged["event_id"] == f"{opened_run.run_id}:{row.sequence}"


async def test_inline_base64_of_a_runner_reaches_neither_event_log_nor_transcript(opened_run: OpenedRun) -> None:
    """PM-13: in a message that is completed, in the last one, in an artifact, in the result of a tool."""
    journal = await opened_run.journal()
    canary = base64.b64encode(b"canary").decode()
    content = [{"type": "text", "text": "look"}, {"type": "image_base64", "image_base64": canary}]
    linked = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{canary}"}}]
    call = {"tool_call_id": "c1", "tool_name": "draw"}
    for result in (
        ("tool.call.started", call | {"parameters": {"image_base64": canary}}),
        ("tool.call.completed", call | {"result": {"image_base64": canary}}),
        ("artifact.created", {"artifact_type": "image", "content_base64": canary}),
        ("message.completed", {"message": {"role": "assistant", "content": content}}),
        ("run.completed", {"finish_reason": "stop", "message": {"role": "assistant", "content": linked}}),
    ):
        await journal.add(opened_run.result(*result))
    async with opened_run.host.engine.connect() as connection:
        items = (await connection.execute(select(transcript))).mappings().all()
        logged = (await connection.execute(select(event_log))).mappings().all()
    assert [item["content"] for item in items] == ["hello", "look", ""]
    assert {row["event_type"] for row in logged} > {"tool.call.completed", "artifact.created"}
    assert canary not in str(items) + str(logged)


async def test_state_is_kept_with_the_row_that_set_it(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    for value in ({"n": 1}, {"n": 2}):
        await journal.add(
            opened_run.result("state.updated", {"scope": "conversation", "key": "conversation_id", "value": value})
        )
    async with opened_run.host.engine.connect() as connection:
        row = (await connection.execute(select(runner_state))).mappings().one()
    assert (row["state_key"], row["value"], row["sequence"]) == ("external.conversation_id", {"n": 2}, 3)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"scope": "subject", "key": "k", "value": 1}, "data.scope"),
        ({"scope": "actor", "key": "k", "value": "x" * (256 * 1024)}, "data.value"),
        ({"scope": "planet", "key": "k", "value": 1}, "data.scope"),
        ({"scope": "actor", "key": "k" * 256, "value": 1}, "data.key"),
        ({"scope": "actor", "key": "k", "value": float("nan")}, "data"),
        ({"scope": "actor", "key": "k", "value": 1, "extra": 1}, "data.extra"),
    ],
    ids=["no identity", "too large", "unknown scope", "long key", "NaN", "unknown field"],
)
async def test_refused_state_update_is_kept_without_effect_and_the_run_goes_on(
    opened_run: OpenedRun, data: dict[str, Any], field: str
) -> None:
    """P-V6."""
    journal = await opened_run.journal()
    await journal.add(opened_run.result("state.updated", data))
    await journal.add(opened_run.message("fine"))
    await journal.add(opened_run.result(*COMPLETED))
    assert (await rejections(opened_run))[0].startswith(field)
    assert journal.end == AttemptEnd("completed")
    async with opened_run.host.engine.connect() as connection:
        assert (await connection.execute(select(runner_state))).first() is None


@pytest.mark.parametrize(
    "value",
    [42, None, "text", {"no": "type"}, object(), ["message.delta"], {"type": 5, "data": {}}],
    ids=["number", "none", "text", "no type", "object", "list", "type is a number"],
)
async def test_rubbish_fails_the_run_with_a_clear_code(opened_run: OpenedRun, value: object) -> None:
    """P-V4."""
    journal = await opened_run.journal()
    await journal.add(value)
    assert journal.end is not None
    assert (journal.end.outcome, journal.end.code) == ("failed", "runner.protocol")
    assert len(await rejections(opened_run)) == 1


async def test_result_of_another_run_fails_this_one(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    await journal.add(opened_run.message("mine?") | {"run_id": "another"})
    assert journal.end is not None
    assert journal.end.code == "runner.protocol"
    assert len(await opened_run.host.transcript()) == 1


@pytest.mark.parametrize(
    "content",
    ["not base64!", base64.b64encode(b"x" * (MAX_INLINE_ARTIFACT_BYTES + 1)).decode()],
    ids=["bad base64", "too large"],
)
async def test_unusable_artifact_content_fails_the_run(opened_run: OpenedRun, content: str) -> None:
    """P-V7."""
    journal = await opened_run.journal()
    await journal.add(opened_run.result("artifact.created", {"artifact_type": "file", "content_base64": content}))
    assert journal.end is not None
    assert journal.end.code == "runner.protocol"


async def test_largest_allowed_artifact_fits(opened_run: OpenedRun) -> None:
    """D-28, C11."""
    journal = await opened_run.journal()
    content = base64.b64encode(bytes(MAX_INLINE_ARTIFACT_BYTES)).decode()
    await journal.add(opened_run.result("artifact.created", {"artifact_type": "file", "content_base64": content}))
    assert journal.end is None
    async with opened_run.host.engine.connect() as connection:
        row = (await connection.execute(select(artifact))).mappings().one()
    assert row["size_bytes"] == MAX_INLINE_ARTIFACT_BYTES


async def test_existing_artifact_id_with_other_content_fails_the_run(opened_run: OpenedRun) -> None:
    """F-23."""
    journal = await opened_run.journal()
    for content in (b"one", b"one", b"two"):
        data = {"artifact_type": "file", "artifact_id": "a", "content_base64": base64.b64encode(content).decode()}
        await journal.add(opened_run.result("artifact.created", data))
    assert (await opened_run.types()).count("artifact.created") == 2
    assert journal.end is not None
    assert journal.end.code == "runner.protocol"


async def test_artifact_id_taken_by_another_run_meanwhile_fails_this_one_clearly(
    opened_run: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-23: the look before the commit saw nothing, the commit meets the other run's artifact."""

    async def nothing_is_known(*_: object) -> bool:
        return False

    journal = await opened_run.journal()
    data = {"artifact_type": "file", "artifact_id": "a", "content_base64": base64.b64encode(b"one").decode()}
    await journal.add(opened_run.result("artifact.created", data))
    monkeypatch.setattr(ArtifactStore, "is_known", nothing_is_known)
    await journal.add(opened_run.delta("said before"))
    await journal.add(opened_run.result("artifact.created", data))
    assert journal.end is not None
    assert journal.end.code == "runner.protocol"
    assert await opened_run.types() == [
        "host.attempt_started",
        "artifact.created",
        "message.delta",
        "host.result_rejected",
        "host.attempt_ended",
    ]


async def test_number_below_one_is_told_and_processed(opened_run: OpenedRun) -> None:
    """P-S6."""
    journal = await opened_run.journal()
    await journal.add(opened_run.delta("zero", sequence=0))
    await journal.close(None)
    row = (await opened_run.rows())[-1]
    assert (row.source_sequence, row.metadata["warnings"]) == (0, ["sequence: numbers start at 1"])


async def test_oversize_text_moves_to_an_artifact_and_nothing_is_cut(opened_run: OpenedRun) -> None:
    """F-7, D-28."""
    journal = await opened_run.journal()
    text = "ü" * (MAX_INLINE_TEXT_BYTES // 2 + 1)
    await journal.add(opened_run.message(text))
    row = (await opened_run.rows())[-1]
    message = row.data["message"]
    assert message["content"] == text[:EXCERPT_CHARACTERS]  # type: ignore[index, call-overload]
    async with opened_run.host.engine.connect() as connection:
        store = ArtifactStore(connection, WORKSPACE)
        content = await store.read(row.artifact_refs[0].artifact_id, offset=0, length=10_000_000)
    assert content.decode() == text
    item = (await opened_run.host.transcript())[-1]
    assert item.artifact_refs[0]["artifact_id"] == row.artifact_refs[0].artifact_id


async def test_oversize_tool_result_keeps_its_names(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    data = {"tool_call_id": "t1", "tool_name": "grep", "result": {"lines": ["x" * MAX_INLINE_TEXT_BYTES]}}
    await journal.add(opened_run.result("tool.call.completed", data))
    row = (await opened_run.rows())[-1]
    assert (row.data["tool_call_id"], row.data["tool_name"]) == ("t1", "grep")
    assert "result" not in row.data
    assert row.artifact_refs[0].mime_type == "application/json"


async def test_result_over_the_whole_limit_is_rejected_and_the_run_goes_on(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    await journal.add(opened_run.message("x" * (MAX_RESULT_BYTES + 1)))
    assert journal.end is None
    assert "exceeds" in (await rejections(opened_run))[0]


async def test_invalid_failure_report_still_fails_the_run(opened_run: OpenedRun) -> None:
    """D-23, C22."""
    journal = await opened_run.journal()
    await journal.add(opened_run.result("run.failed", {"code": 7}))
    assert journal.end is not None
    assert (journal.end.outcome, journal.end.code) == ("failed", "runner.protocol")


@pytest.mark.parametrize(
    ("code", "outcome"), [("cancelled", "cancelled"), ("my.code", "failed")], ids=["cancelled", "failed"]
)
async def test_reported_failure_keeps_its_code(opened_run: OpenedRun, code: str, outcome: str) -> None:
    journal = await opened_run.journal()
    await journal.add(opened_run.result("run.failed", {"code": code, "error": "no", "retryable": True}))
    assert journal.end == AttemptEnd(outcome, code, "no", retryable=True)


@pytest.mark.parametrize(
    ("type_", "data", "outcome"),
    [
        pytest.param("run.failed", {"code": "my.code", "error": "deadline_exceeded"}, "timeout", id="failed"),
        pytest.param("run.failed", {"code": 7}, "failed", id="wrongly-reported"),
        pytest.param("run.completed", {"finish_reason": "stop"}, "completed", id="completed"),
    ],
)
async def test_failure_after_the_deadline_is_a_timeout(
    opened_run: OpenedRun, type_: str, data: dict[str, Any], outcome: str
) -> None:
    """P-T6: the runner may hear of it before the host stops it."""
    opened = await opened_run.open()
    journal = opened_run.journal_of(replace(opened, run=replace(opened.run, deadline_at=datetime.now(UTC))))
    await journal.add(opened_run.delta("in time"))
    await journal.add(opened_run.result(type_, data))
    assert journal.end is not None
    assert journal.end.outcome == outcome


@pytest.mark.parametrize(
    "results",
    [[], [("message.completed", {"message": {"role": "assistant", "content": "  "}})], [("tool.call.started", {})]],
    ids=["nothing", "blank message", "tool call only"],
)
async def test_completing_without_showing_anything_fails(
    opened_run: OpenedRun, results: list[tuple[str, dict[str, Any]]]
) -> None:
    """D-24, LA-08."""
    journal = await opened_run.journal()
    for result in [*results, COMPLETED]:
        await journal.add(opened_run.result(*result))
    assert journal.end is not None
    assert (journal.end.outcome, journal.end.code) == ("failed", "runner.no_output")


async def test_action_alone_is_output(opened_run: OpenedRun) -> None:
    journal = await opened_run.journal()
    await journal.add(opened_run.result("action.requested", {"action": "message.edit"}))
    assert await journal.close(AttemptEnd("completed")) == AttemptEnd("completed")


async def test_unknown_type_is_stored_with_a_warning(opened_run: OpenedRun) -> None:
    """D-4, P-V3."""
    journal = await opened_run.journal()
    await journal.add(opened_run.result("processor.log", {"anything": [1]}))
    row = (await opened_run.rows())[-1]
    assert (row.type, row.data) == ("processor.log", {"anything": [1]})
    assert "unknown" in str(row.metadata["warnings"])


async def test_repeated_number_with_same_content_is_dropped(opened_run: OpenedRun) -> None:
    """P-S4."""
    journal = await opened_run.journal()
    for _ in range(2):
        await journal.add(opened_run.delta("once", sequence=1))
    await journal.add(opened_run.delta("next", sequence=2))
    await journal.close(None)
    assert [row.source_sequence for row in await opened_run.rows()] == [None, 1, 2]


async def test_repeated_number_with_other_content_is_kept_as_rejected(opened_run: OpenedRun) -> None:
    """F-2, D-22."""
    journal = await opened_run.journal()
    await journal.add(opened_run.delta("one", sequence=1))
    await journal.add(opened_run.delta("other", sequence=1))
    assert "sequence_conflict" in (await rejections(opened_run))[0]
    assert journal.end is None


async def test_host_row_never_takes_a_runners_number(opened_run: OpenedRun) -> None:
    """F-1."""
    journal = await opened_run.journal()
    await journal.add(opened_run.result("state.updated", {"scope": "planet"}, sequence=1))
    await journal.add(opened_run.message("answer", sequence=2))
    await journal.add(opened_run.result(*COMPLETED, sequence=3))
    numbered = {row.type: row.source_sequence for row in await opened_run.rows()}
    assert numbered["host.result_rejected"] is None
    assert (numbered["message.completed"], numbered["run.completed"]) == (2, 3)


async def test_gap_and_late_number_are_told_and_processed(opened_run: OpenedRun) -> None:
    """P-S5, P-S7."""
    journal = await opened_run.journal()
    for number in (5, 9, 7):
        await journal.add(opened_run.delta(str(number), sequence=number))
    await journal.close(None)
    rows = (await opened_run.rows())[1:]
    assert [row.source_sequence for row in rows] == [5, 9, 7]
    assert "warnings" not in rows[0].metadata
    assert rows[1].metadata["warnings"] == ["sequence: 6 was expected"]


async def test_usage_is_summed_and_unknown_stays_unknown(opened_run: OpenedRun) -> None:
    """D-32, P-30."""
    first = await opened_run.journal()
    await first.add(opened_run.delta("a", usage={"prompt_tokens": 10}))
    await first.close(None)
    second = await opened_run.journal()
    await second.add(opened_run.delta("b", usage={"prompt_tokens": 5}))
    await second.close(AttemptEnd("cancelled", "cancelled"))
    usage = (await opened_run.host.run(str(opened_run.run_id))).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (15, None)


async def test_text_that_postgres_refuses_is_read_back_exactly(opened_run: OpenedRun) -> None:
    """D-31."""
    journal = await opened_run.journal()
    text = "nul \x00, half \ud800, marker \ufdd0"
    await journal.add(opened_run.message(text))
    await journal.add(opened_run.result("run.failed", {"code": "c", "error": text}))
    message = (await opened_run.rows())[1].data["message"]
    assert message["content"] == text  # type: ignore[index, call-overload]
    assert (await opened_run.host.transcript())[-1].content == text
    async with opened_run.host.engine.connect() as connection:
        from stores.attempts import AttemptStore

        assert (await AttemptStore(connection).list(WORKSPACE, opened_run.run_id))[0].reason == text


async def test_tool_calls_are_in_the_event_log_without_their_content(opened_run: OpenedRun) -> None:
    """D-29."""
    journal = await opened_run.journal()
    call = {"tool_call_id": "t1", "tool_name": "grep", "parameters": {"q": "private"}}
    await journal.add(opened_run.result("tool.call.started", call))
    async with opened_run.host.engine.connect() as connection:
        row = (await connection.execute(select(event_log).where(event_log.c.source == "runner"))).mappings().one()
    assert (row["event_type"], row["metadata"]) == ("tool.call.started", {"tool_call_id": "t1", "tool_name": "grep"})
