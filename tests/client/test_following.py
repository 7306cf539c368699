import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from runhost.client import ApiProblem, HostUnreachable, RunhostClient, UnexpectedAnswer
from tests.client.stub import RUN_ID, HostStub, answer, cut, event, frames, problem, send_rows
from tests.eventually import eventually
from tests.fixtures.openai_stub import Reply, StubRequest


async def sequences(client: RunhostClient, after: int = 0) -> list[int]:
    return [row.sequence async for row in client.follow_run(RUN_ID, after=after)]


def positions(stub: HostStub) -> list[str | None]:
    return [request.headers.get("last-event-id") for request in stub.requests]


async def test_rows_come_in_order_until_the_end(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(frames(1, 2, 3, end=True))

    assert await sequences(client) == [1, 2, 3]
    assert host_stub.requests[0].path == f"/v1/runs/{RUN_ID}/stream"
    assert positions(host_stub) == [None]


@pytest.mark.parametrize("cut_off", [True, False], ids=["broken", "ended early"])
async def test_lost_connection_is_resumed_without_gap_or_duplicate(
    client: RunhostClient, host_stub: HostStub, cut_off: bool
) -> None:
    host_stub.play(frames(1, 2, cut_off=cut_off), frames(3, cut_off=cut_off), frames(4, 5, end=True))

    assert await sequences(client) == [1, 2, 3, 4, 5]
    assert positions(host_stub) == [None, "2", "3"]


async def test_rows_sent_again_are_not_seen_twice(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(frames(1, 2, 3, cut_off=True), frames(1, 2, 3, 4, end=True))

    assert await sequences(client) == [1, 2, 3, 4]


async def test_event_cut_in_the_middle_is_asked_for_again(client: RunhostClient, host_stub: HostStub) -> None:
    async def cut_row(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_raw(b'id: 2\nevent: message.delta\ndata: {"run_')
        reply.reset()

    host_stub.play(frames(1), cut_row, frames(2, end=True))

    assert await sequences(client) == [1, 2]
    assert positions(host_stub) == [None, "1", "1"]


async def test_start_after_a_row_skips_what_is_known(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(frames(8, 9, end=True))

    assert await sequences(client, after=7) == [8, 9]
    assert positions(host_stub) == ["7"]


async def test_run_seen_to_its_end_ends_at_once(client: RunhostClient, host_stub: HostStub) -> None:
    async def nothing(_request: StubRequest, reply: Reply) -> None:
        await reply.send_head(204, {})

    host_stub.play(nothing)

    assert await sequences(client, after=9) == []


async def test_end_of_an_attempt_that_was_retried_is_not_the_end(client: RunhostClient, host_stub: HostStub) -> None:
    async def retried(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await send_rows(reply, 1, 2, end=True)
        await send_rows(reply, 3, 4, end=True)
        await reply.end_chunks()

    host_stub.play(retried)

    assert await sequences(client) == [1, 2, 3, 4]
    assert len(host_stub.requests) == 1


@pytest.mark.parametrize(
    "trouble",
    [cut, problem(503, "engine_unavailable", Retry_After="0"), answer(502, "proxy")],
    ids=["cut", "unavailable", "proxy"],
)
async def test_host_that_comes_back_is_followed_on(client: RunhostClient, host_stub: HostStub, trouble: Any) -> None:
    host_stub.play(frames(1, cut_off=True), trouble, trouble, trouble, trouble, trouble, frames(2, end=True))

    assert await sequences(client) == [1, 2]


async def test_host_that_stays_away_is_given_up(client: RunhostClient, host_stub: HostStub) -> None:
    host_stub.play(frames(1, cut_off=True), cut)
    events = client.follow_run(RUN_ID)

    assert (await anext(events)).sequence == 1
    with pytest.raises(HostUnreachable):
        await anext(events)

    assert len(host_stub.requests) > 5


@pytest.mark.parametrize(
    ("status", "code"), [(404, "run_not_found"), (410, "cursor_expired"), (401, "unauthorized"), (422, "invalid")]
)
async def test_refusal_ends_the_following(client: RunhostClient, host_stub: HostStub, status: int, code: str) -> None:
    host_stub.play(problem(status, code))

    with pytest.raises(ApiProblem, match=code):
        await sequences(client)

    assert len(host_stub.requests) == 1


@pytest.mark.parametrize("data", ["{", "[]", '{"run_id": 1}', "[" * 100_000], ids=["cut", "list", "row", "deep"])
async def test_stream_of_something_else_is_named(client: RunhostClient, host_stub: HostStub, data: str) -> None:
    async def rubbish(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_event(data)
        await reply.end_chunks()

    host_stub.play(rubbish)

    with pytest.raises(UnexpectedAnswer, match="holds no ledger"):
        await sequences(client)


async def test_reader_that_stops_closes_its_connection(client: RunhostClient, host_stub: HostStub) -> None:
    gone = asyncio.Event()

    async def endless(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await send_rows(reply, 1)
        await reply.until_disconnected()
        gone.set()

    host_stub.play(endless)
    async with aclosing(client.follow_run(RUN_ID)) as events:
        assert (await anext(events)).sequence == 1

    await eventually(gone.is_set)


async def test_lone_surrogates_come_back_as_sent(client: RunhostClient, host_stub: HostStub) -> None:
    row = event(1, "host.run_ended", data={"x": "\ud800"})

    async def surrogate(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_event(row)
        await reply.end_chunks()

    host_stub.play(surrogate)

    [found] = [found async for found in client.follow_run(RUN_ID)]
    assert found.data == {"x": "\ud800"}
