"""A run reads the events of its own conversation (PROTOCOL 9.5, H-P9)."""

import pytest

from host_api.errors import HostCallError
from host_api.methods.events import event_get, event_page
from host_api.methods.history import history_page
from runhost.protocol import ErrorCode
from stores.errors import EventNotFound
from tests.host_api.conftest import ELSEWHERE, GrantedRun, NewRun


async def test_event_is_read_with_what_is_known_of_it(new_run: NewRun) -> None:
    run = await new_run(
        event_time=1_700_000_000,
        thread_id="t1",
        actor={"actor_type": "user", "actor_id": "u1", "actor_name": "a\x00 名前"},
        raw_ref={"ref_id": "raw-1"},
        input={"text": "b\x00 内容"},
    )
    event = await run.ask(event_get, event_id=run.row.event_id)
    assert event.model_dump(exclude={"seq", "created_at", "cursor"}) == {
        "event_id": run.row.event_id,
        "event_type": "message.received",
        "source": "platform",
        "event_time": 1_700_000_000,
        "bot_id": "b1",
        "workspace_id": "w1",
        "conversation_id": "c1",
        "thread_id": "t1",
        "actor_type": "user",
        "actor_id": "u1",
        "actor_name": "a\x00 名前",
        "subject_type": "message",
        "subject_id": "m1",
        "input_summary": "b\x00 内容",
        "input_ref": None,
        "raw_ref": "raw-1",
        "metadata": {},
    }
    assert event.created_at >= 1_700_000_000
    assert (await run.ask(event_page)).items == [event]


async def test_pages_show_each_event_once_newest_first(run: GrantedRun, new_run: NewRun) -> None:
    later = [(await new_run()).row.event_id for _ in range(4)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await run.ask(event_page, limit=2, before_cursor=cursor)
        seen += [item.event_id for item in page.items]
        cursor = page.next_cursor
        assert page.prev_cursor == page.items[0].cursor
        if cursor is None:
            break
    assert seen == [run.row.event_id, *later][::-1]


async def test_page_has_at_most_100_events(run: GrantedRun) -> None:
    fill = """
        INSERT INTO event_log (workspace_id, event_id, event_type, source, bot_id, conversation_id)
        SELECT 'w1', 'e' || n, 'message.received', 'platform', 'b1', 'c1' FROM generate_series(1, 110) n
    """
    await run.services.pool.execute(fill)
    page = await run.ask(event_page, limit=1_000)
    assert (len(page.items), page.has_more) == (100, True)


@pytest.mark.parametrize(
    ("event_types", "count"),
    [(["message.received"], 1), (["api.invoked", "message.received"], 2), (["a\x00b"], 0), ([], 0), (None, 2)],
)
async def test_page_is_narrowed_to_types(
    run: GrantedRun, new_run: NewRun, event_types: list[str] | None, count: int
) -> None:
    await new_run(event_type="api.invoked")
    assert len((await run.ask(event_page, event_types=event_types)).items) == count


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_pm_11_foreign_events_answer_like_unknown_ones(run: GrantedRun, new_run: NewRun, where: str) -> None:
    foreign = await new_run(**ELSEWHERE[where])
    assert [item.event_id for item in (await run.ask(event_page)).items] == [run.row.event_id]
    answers: list[str] = []
    for event_id in (foreign.row.event_id, "unknown"):
        with pytest.raises(EventNotFound) as refusal:
            await run.ask(event_get, event_id=event_id)
        answers.append(str(refusal.value).replace(event_id, "..."))
    assert answers[0] == answers[1]


async def test_pm_11_event_without_a_conversation_is_its_own_runs_alone(run: GrantedRun, new_run: NewRun) -> None:
    alone, other = await new_run(conversation_id=None), await new_run(conversation_id=None)
    assert (await alone.ask(event_get, event_id=alone.row.event_id)).event_id == alone.row.event_id
    assert (await alone.ask(event_page)).items == []
    for reader in (run, other):
        with pytest.raises(EventNotFound):
            await reader.ask(event_get, event_id=alone.row.event_id)


@pytest.mark.parametrize("kind", ["made up", "changed", "of an item", "of another conversation"])
async def test_cursor_that_is_not_of_this_list_names_its_field(run: GrantedRun, new_run: NewRun, kind: str) -> None:
    elsewhere = await new_run(conversation_id="c2")
    own: str = (await run.ask(event_page)).items[0].cursor
    bad = {
        "made up": "x",
        "changed": own[:-1] + ("A" if own[-1] != "A" else "B"),
        "of an item": (await run.ask(history_page)).items[0].cursor,
        "of another conversation": (await elsewhere.ask(event_page)).items[0].cursor,
    }[kind]
    with pytest.raises(HostCallError) as refusal:
        await run.ask(event_page, before_cursor=bad)
    assert (refusal.value.code, refusal.value.details) == (ErrorCode.INVALID_ARGUMENT, {"field": "before_cursor"})


async def test_pm_13_inline_content_is_not_in_an_event(new_run: NewRun) -> None:
    run = await new_run(input={"contents": [{"type": "image_base64", "image_base64": "Y2FuYXJ5"}]})
    event = await run.ask(event_get, event_id=run.row.event_id)
    assert "Y2FuYXJ5" not in event.model_dump_json()
