"""The transcript: paged and searched within its scope (F-9, D-46, D-47)."""

from typing import Any

import pytest

from tests.api.conftest import Host, event


@pytest.fixture
async def talk(host: Host) -> Host:
    """A conversation of five messages, every second one of another bot and thread."""
    await host.agent()
    await host.binding()
    for number in range(5):
        more = {"bot_id": f"b{number % 2}", "thread_id": f"t{number % 2}"}
        text = f"message {number} 人工智能 100% _x_"
        assert (await host.client.post("/v1/events", json=event(f"e{number}", input={"text": text}, **more))).is_success
    await host.client.post("/v1/events", json=event("other", conversation_id="c2", input={"text": "message other"}))
    return host


async def read(host: Host, path: str = "transcript", **query: Any) -> dict[str, Any]:
    answer = await host.client.get(f"/v1/conversations/c1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(page: dict[str, Any]) -> list[str]:
    return [item["event_id"] for item in page["items"]]


async def test_newest_comes_first_in_pages(talk: Host) -> None:
    first = await read(talk, limit=3)
    second = await read(talk, limit=3, cursor=first["next_cursor"])
    assert ids(first) + ids(second) == ["e4", "e3", "e2", "e1", "e0"]
    assert (second["has_more"], second["next_cursor"]) == (False, None)
    assert first["items"][0]["created_at"].endswith("Z")


async def test_cursor_of_an_item_pages_from_there(talk: Host) -> None:
    item = (await read(talk))["items"][2]
    assert ids(await read(talk, cursor=item["cursor"])) == ["e1", "e0"]


async def test_bot_and_thread_narrow_the_conversation(talk: Host) -> None:
    assert ids(await read(talk, bot_id="b1")) == ids(await read(talk, thread_id="t1")) == ["e3", "e1"]
    assert ids(await read(talk, bot_id="b1", thread_id="t0")) == []


async def test_cursor_is_bound_to_bot_and_thread(talk: Host) -> None:
    cursor = (await read(talk, limit=1))["next_cursor"]
    for path, query in (("c1", {"bot_id": "b1"}), ("c1", {"thread_id": "t0"}), ("c2", {})):
        answer = await talk.client.get(f"/v1/conversations/{path}/transcript", params=query | {"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "cursor_invalid")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("message", ["e4", "e3", "e2", "e1", "e0"]),
        ("MESSAGE 3", ["e3"]),
        ("essag", ["e4", "e3", "e2", "e1", "e0"]),
        ("工智", ["e4", "e3", "e2", "e1", "e0"]),
        ("100%", ["e4", "e3", "e2", "e1", "e0"]),
        ("1_0", []),
        ("%", ["e4", "e3", "e2", "e1", "e0"]),
        ("other", []),
        ("\\", []),
        ("nul\x00", []),
    ],
)
async def test_search_finds_words_and_parts(talk: Host, query: str, found: list[str]) -> None:
    assert ids(await read(talk, "search", query=query)) == found


async def test_search_is_paged_and_bound_to_what_is_looked_for(talk: Host) -> None:
    first = await read(talk, "search", query="message", limit=3, bot_id="b0")
    assert (ids(first), first["has_more"]) == (["e4", "e2", "e0"], False)
    first = await read(talk, "search", query="message", limit=3)
    assert ids(await read(talk, "search", query="message", cursor=first["next_cursor"])) == ["e1", "e0"]
    answer = await talk.client.get(
        "/v1/conversations/c1/search", params={"query": "100%", "cursor": first["next_cursor"]}
    )
    assert answer.json()["code"] == "cursor_invalid"


async def test_conversation_id_may_hold_slashes(talk: Host) -> None:
    await talk.client.post("/v1/events", json=event("slashed", conversation_id="group/1/2"))
    answer = await talk.client.get("/v1/conversations/group%2F1%2F2/transcript")
    assert ids(answer.json()) == ["slashed"]


async def test_conversation_that_nobody_has_written_in_is_empty(host: Host) -> None:
    assert await read(host) == {"items": [], "next_cursor": None, "has_more": False}
