"""A run reads the transcript of its own conversation and thread, both ways (PROTOCOL 9.4, HOST 12, D-46)."""

import re
from typing import Any, cast

import asyncpg
import pytest
from sqlalchemy import insert

from host_api.errors import HostCallError
from host_api.methods.events import event_page
from host_api.methods.history import history_page, history_search
from host_api.scopes import fence_of, scope_of
from runhost.protocol import ErrorCode, HistoryPage
from stores.cursors import transcript_query
from stores.errors import StaleAttempt
from stores.history import HistoryStore
from stores.identifiers import new_uuid
from stores.tables import transcript
from stores.times import from_epoch
from stores.transcripts import ConversationScope, TranscriptStore
from tests.host_api.conftest import ELSEWHERE, GrantedRun, NewRun


async def say(run: GrantedRun, *texts: str, **columns: Any) -> None:
    """Add what the assistant said to the run's conversation."""
    known = {
        "workspace_id": run.row.workspace_id,
        "bot_id": run.row.bot_id,
        "conversation_id": run.row.conversation_id,
        "thread_id": run.row.thread_id,
        "event_id": "said",
        "role": "assistant",
    }
    async with run.host.engine.begin() as connection:
        for text in texts:
            await connection.execute(
                insert(transcript).values(known | {"transcript_id": new_uuid(), "content": text} | columns)
            )


def texts(page: HistoryPage) -> list[str | None]:
    return [item.content for item in page.items]


async def latest_cursor(run: GrantedRun) -> str:
    """Return `ctx.context.latest_cursor` as the run's context has it."""
    row = run.row
    assert row.conversation_id is not None
    async with run.host.engine.connect() as connection:
        position = await TranscriptStore(connection, row.workspace_id).position_before(
            ConversationScope(row.conversation_id, row.bot_id, row.thread_id), row.event_id
        )
    assert position is not None
    query = transcript_query(row.workspace_id, row.conversation_id, row.bot_id, row.thread_id)
    return run.services.cursors.sign(query, position)


async def test_backward_page_is_newest_first_and_holds_the_own_message(run: GrantedRun) -> None:
    await say(run, "one", "two")
    page = await run.ask(history_page)
    assert texts(page) == ["two", "one", "hello"]
    assert (page.has_more, page.next_cursor, page.total_count) == (False, None, None)
    assert page.prev_cursor == page.items[0].cursor
    own = page.items[2]
    assert (own.role, own.event_id, own.content_json) == (
        "user",
        run.row.event_id,
        {"role": "user", "content": "hello"},
    )
    assert own.metadata["run_id"] == str(run.run_id)


async def test_d_46_forward_page_without_a_cursor_starts_at_the_oldest(run: GrantedRun) -> None:
    await say(run, "one", "two")
    assert texts(await run.ask(history_page, direction="forward", limit=2)) == ["hello", "one"]


@pytest.mark.parametrize(("direction", "parameter"), [("backward", "before_cursor"), ("forward", "after_cursor")])
async def test_pages_show_each_item_once_and_in_order(run: GrantedRun, direction: str, parameter: str) -> None:
    await say(run, *"1234")
    seen: list[str | None] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await run.ask(history_page, direction=direction, limit=2, **cursor)
        seen += texts(page)
        assert page.has_more is (page.next_cursor is not None)
        if page.next_cursor is None:
            break
        cursor = {parameter: page.next_cursor}
    expected = ["hello", *"1234"]
    assert seen == (expected if direction == "forward" else expected[::-1])


async def test_page_that_ends_with_the_list_has_no_more(run: GrantedRun) -> None:
    await say(run, "one")
    page = await run.ask(history_page, limit=2)
    assert (len(page.items), page.has_more, page.next_cursor) == (2, False, None)


async def test_latest_cursor_parts_what_was_before_the_event_from_what_came_after(new_run: NewRun) -> None:
    earlier = await new_run(input={"text": "earlier"})
    await say(earlier, "answer")
    await new_run(input={"text": "in a thread"}, thread_id="t1")
    run = await new_run(input={"text": "now"})
    await say(run, "after")
    cursor = await latest_cursor(run)
    assert texts(await run.ask(history_page, after_cursor=cursor, direction="forward")) == ["now", "after"]
    assert texts(await run.ask(history_page, before_cursor=cursor)) == ["earlier"]
    assert texts(await run.ask(history_page, direction="forward", before_cursor=cursor)) == ["earlier"]


async def test_cursor_of_a_checkpoint_leaves_out_what_it_covers(run: GrantedRun) -> None:
    """PROTOCOL 12: `covers_until` is an item's cursor, kept in state."""
    await say(run, *"123")
    covers_until = (await run.ask(history_page)).items[1].cursor
    assert texts(await run.ask(history_page, after_cursor=covers_until)) == ["3"]
    assert texts(await run.ask(history_page, after_cursor=covers_until, direction="forward")) == ["3"]


async def test_page_between_two_cursors_holds_neither_of_them(run: GrantedRun) -> None:
    await say(run, *"12345")
    items = (await run.ask(history_page, direction="forward")).items
    window = {"after_cursor": items[1].cursor, "before_cursor": items[5].cursor}
    assert texts(await run.ask(history_page, **window)) == ["4", "3", "2"]
    assert texts(await run.ask(history_page, direction="forward", limit=2, **window)) == ["2", "3"]


async def test_page_has_at_most_100_items(run: GrantedRun) -> None:
    await say(run, *(str(number) for number in range(100)))
    page = await run.ask(history_page, limit=1_000)
    assert (len(page.items), page.has_more) == (100, True)
    assert len((await run.ask(history_search, query="e", top_k=1_000)).items) == 1


@pytest.mark.parametrize("field", ["before_cursor", "after_cursor"])
async def test_cursor_that_is_not_of_this_list_names_its_field(run: GrantedRun, field: str) -> None:
    cursor: str = (await run.ask(history_page)).items[0].cursor
    changed = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    of_an_event: str = (await run.ask(event_page)).items[0].cursor
    for bad in (changed, of_an_event, cursor + "!", cursor + "=", "MQ", "1", "日本語", "\x00"):
        params: dict[str, Any] = {field: bad}
        with pytest.raises(HostCallError) as refusal:
            await run.ask(history_page, **params)
        assert (refusal.value.code, refusal.value.details) == (ErrorCode.INVALID_ARGUMENT, {"field": field})


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_cursor_of_another_conversation_is_refused(run: GrantedRun, new_run: NewRun, where: str) -> None:
    foreign = (await (await new_run(**ELSEWHERE[where])).ask(history_page)).items[0].cursor
    with pytest.raises(HostCallError) as refusal:
        await run.ask(history_page, before_cursor=foreign)
    assert refusal.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_pm_11_items_of_another_conversation_are_not_read(run: GrantedRun, new_run: NewRun, where: str) -> None:
    """PM-11, H-P5: the thread is compared with null included, so neither of the two sees the other."""
    foreign = await new_run(input={"text": "secret plans"}, **ELSEWHERE[where])
    assert texts(await run.ask(history_page)) == ["hello"]
    assert texts(await foreign.ask(history_page)) == ["secret plans"]
    assert (await run.ask(history_search, query="secret")).items == []
    assert (await foreign.ask(history_search, query="hello")).items == []


async def test_pm_11_another_conversation_cannot_be_asked_for(run: GrantedRun, new_run: NewRun) -> None:
    await new_run(conversation_id="c2")
    for conversation_id in ("c2", "nowhere"):
        with pytest.raises(HostCallError) as refusal:
            await run.ask(history_page, conversation_id=conversation_id)
        assert refusal.value.code is ErrorCode.UNAUTHORIZED
    assert texts(await run.ask(history_page, conversation_id="c1")) == ["hello"]


async def test_run_without_a_bot_reads_what_any_bot_said(run: GrantedRun, new_run: NewRun) -> None:
    """H-P5: the bot narrows the history if the run has one."""
    anybody = await new_run(bot_id=None, input={"text": "no bot"})
    assert texts(await anybody.ask(history_page)) == ["no bot", "hello"]
    assert texts(await run.ask(history_page)) == ["hello"]


async def test_run_without_a_conversation_has_no_history(run: GrantedRun, new_run: NewRun) -> None:
    alone = await new_run(conversation_id=None)
    assert (await alone.ask(history_page)).items == []
    assert (await alone.ask(history_search, query="hello")).items == []
    cursor = (await run.ask(history_page)).items[0].cursor
    with pytest.raises(HostCallError):
        await alone.ask(history_page, before_cursor=cursor)


async def test_references_come_when_asked_for_and_with_every_search(run: GrantedRun) -> None:
    """H-P6: never content, and only then."""
    reference = {"artifact_id": "a1", "artifact_type": "file"}
    await say(run, "see this", artifact_refs=[reference])
    assert (await run.ask(history_page)).items[0].artifact_refs == []
    assert (await run.ask(history_page, include_artifacts=True)).items[0].artifact_refs == [reference]
    assert (await run.ask(history_search, query="see")).items[0].artifact_refs == [reference]


async def test_d_31_text_is_read_as_it_was_written(new_run: NewRun) -> None:
    for text in ("a\x00b", "\ufdd0", "\ufdd00000", "emoji 👩‍👩‍👧 and ünï", "中文"):
        run = await new_run(input={"text": text})
        item = (await run.ask(history_page)).items[0]
        assert (item.content, item.content_json) == (text, {"role": "user", "content": text})
        assert len((await run.ask(history_search, query=text)).items) == 1


async def test_pm_13_inline_content_is_not_in_the_history(new_run: NewRun) -> None:
    run = await new_run(input={"text": "look", "contents": [{"type": "image_base64", "image_base64": "Y2FuYXJ5"}]})
    page = await run.ask(history_page, include_artifacts=True)
    assert "Y2FuYXJ5" not in page.model_dump_json()
    assert len(page.items[0].artifact_refs) == 1


class ExplainingPool:
    """Stands for a pool and keeps the plans of what it is asked, instead of answering."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.plan = ""

    async def fetch(self, statement: str, *arguments: object) -> list[object]:
        self.plan += "\n".join(row[0] for row in await self._pool.fetch(f"EXPLAIN {statement}", *arguments))
        return []


@pytest.mark.parametrize("in_thread", [False, True])
async def test_page_of_a_long_conversation_reads_an_index_in_its_order(new_run: NewRun, in_thread: bool) -> None:
    run = await new_run(**({"thread_id": "t1"} if in_thread else {}))
    fill = """
        INSERT INTO transcript (transcript_id, workspace_id, bot_id, conversation_id, thread_id, event_id, role)
        SELECT gen_random_uuid(), 'w1', 'b1', 'c' || n % 7, CASE WHEN n % 20 = 0 THEN 't1' END, 'e', 'user'
        FROM generate_series(1, 7000) n
    """
    await run.services.pool.execute(fill)
    await run.services.pool.execute("ANALYZE transcript")
    pool = ExplainingPool(run.services.pool)
    store = HistoryStore(cast("asyncpg.Pool", pool), run.services.cursors, scope_of(run.call().session))
    # The explaining pool has no rows, not even the one of an attempt that is open.
    with pytest.raises(StaleAttempt):
        await store.page(fence_of(run.call().session), newest_first=True, with_artifacts=False, limit=51)
    index = "ix_transcript_threads" if in_thread else "ix_transcript_workspace_id_conversation_id_seq"
    assert re.search(rf"Limit .*\n\s+->\s+Index Scan Backward using {index}", pool.plan)


CHINESE = "我们明天下午三点在北京开会"
JAPANESE = "来週の会議は東京で行います"


FOUND = {
    "quick FOX": ["the quick brown fox"],
    "fox quick": ["the quick brown fox"],
    "ick bro": ["the quick brown fox"],
    "北京开会": [CHINESE],
    "会": [JAPANESE, CHINESE],
    "東京": [JAPANESE],
    "100%": ["100% sure"],
    "0_": [],
    "%": ["100% sure"],
    "a\\b": ["a\\b"],
    "nothing of this": [],
    "\x00": [],
    "'; DROP TABLE transcript; --": [],
    "!!!": [],
}


async def test_d_47_search_finds_words_and_parts_of_text(run: GrantedRun) -> None:
    await say(run, "the quick brown fox", CHINESE, JAPANESE, "100% sure", "a\\b")
    results = {query: await run.ask(history_search, query=query) for query in FOUND}
    assert {result.query: [item.content for item in result.items] for result in results.values()} == FOUND
    assert all(item.cursor for result in results.values() for item in result.items)


BY_USER, OF_TOOL = "word by a user", "word of a tool"
NARROWED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [OF_TOOL, BY_USER]),
    ({"roles": ["user"]}, [BY_USER]),
    ({"roles": ["assistant", "user"]}, [OF_TOOL, BY_USER]),
    ({"roles": []}, []),
    ({"item_types": ["tool_call"]}, [OF_TOOL]),
    ({"event_types": ["message.received"]}, [BY_USER]),
    ({"event_types": ["message.recalled", "a\x00"]}, []),
    ({"after": 1_000, "before": 2_000}, [OF_TOOL]),
    ({"after": 1_001}, [BY_USER]),
    ({"before": 1_000}, []),
    ({"before": 1_001}, [OF_TOOL]),
    ({"roles": ["user"], "item_types": ["tool_call"]}, []),
]


async def test_c_15_search_is_narrowed(new_run: NewRun) -> None:
    run = await new_run(input={"text": BY_USER})
    await say(run, OF_TOOL, item_type="tool_call", created_at=from_epoch(1_000))
    for filters, expected in NARROWED:
        result = await run.ask(history_search, query="word", filters=filters)
        assert [item.content for item in result.items] == expected, filters


async def test_search_result_goes_on_from_the_cursor_of_an_item(run: GrantedRun) -> None:
    await say(run, "one", "two")
    (item,) = (await run.ask(history_search, query="one")).items
    assert texts(await run.ask(history_page, before_cursor=item.cursor)) == ["hello"]
