"""Following a run live: nothing missed, nothing twice, whatever happens to reader, notifications and server."""

import asyncio
import random
from typing import Any

import pytest
from sqlalchemy import func, update

from api import stream_response, streams
from runhost.protocol import RunStatus
from stores.identifiers import new_uuid
from stores.tables import agent_run, agent_run_attempt
from tests.api.conftest import Host, NewHost
from tests.api.stream_reader import Received, following, read_some
from tests.eventually import eventually


def sequences(received: list[Received]) -> list[int]:
    return [frame.id for frame in received]


def readers_cut_off(host: Host) -> float:
    return host.services.metrics.cut._value.get()


async def test_inv_3_reader_gets_replay_then_live_rows_then_the_end(server: Host) -> None:
    writer = await server.writer()
    await writer.deltas(3)
    async with following(server.client, str(writer.run_id)) as reader:
        head = await reader.take(4)
        await writer.deltas(2)
        last = await writer.complete()
        tail = await reader.all()
    assert sequences(head + tail) == list(range(1, last + 1))
    assert reader.retry == "2000"
    assert tail[-1].event == "host.run_ended"


async def test_frames_hold_the_same_documents_as_pages(server: Host) -> None:
    writer = await server.writer()
    await writer.rows([("message.delta", {"chunk": {"content": "a\nb \ud800\x00 日本"}}), ("odd\ntype", {"x": [1]})])
    await writer.complete()
    async with following(server.client, str(writer.run_id)) as reader:
        received = await reader.all()
    page = (await server.client.get(f"/v1/runs/{writer.run_id}/events")).json()
    assert [frame.data for frame in received] == page["items"]
    assert received[1].data["data"]["chunk"]["content"] == "a\nb \ud800\x00 日本"
    assert received[2].event == "odd?type"


async def test_headers_tell_proxies_not_to_buffer(server: Host) -> None:
    writer = await server.writer()
    async with following(server.client, str(writer.run_id)) as reader:
        headers = reader.response.headers
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"


async def test_last_event_id_resumes_and_wins_over_after(server: Host) -> None:
    writer = await server.writer()
    last = await writer.deltas(9)
    last = await writer.complete()
    async with following(server.client, str(writer.run_id), last_event_id=5, after=2) as reader:
        assert sequences(await reader.all()) == list(range(6, last + 1))
    async with following(server.client, str(writer.run_id), after=2) as reader:
        assert sequences(await reader.all()) == list(range(3, last + 1))


async def test_reader_who_has_seen_the_end_is_told_not_to_come_back(server: Host) -> None:
    writer = await server.writer()
    last = await writer.complete()
    answer = await server.client.get(f"/v1/runs/{writer.run_id}/stream", headers={"Last-Event-ID": str(last)})
    assert answer.status_code == 204


async def test_run_that_goes_on_after_an_end_is_replayed_beyond_it(server: Host) -> None:
    """An operator's retry appends to the same ledger (DESIGN 9)."""
    writer = await server.writer()
    await writer.settle(RunStatus.FAILED)
    async with server.engine.begin() as connection:
        reopened = {"status": "created", "attempt_outcome": None}
        await connection.execute(update(agent_run).where(agent_run.c.run_id == writer.run_id).values(reopened))
        ended = {"outcome": "failed", "ended_at": func.now()}
        mine = agent_run_attempt.c.run_id == writer.run_id
        await connection.execute(update(agent_run_attempt).where(mine).values(ended))
    await server.writer(str(writer.run_id))
    async with following(server.client, str(writer.run_id)) as reader:
        received = await reader.take(3)
    assert [frame.event for frame in received] == ["host.attempt_started", "host.run_ended", "host.attempt_started"]


@pytest.mark.timeout(180)
async def test_inv_3_thousand_reconnects_leave_no_gap_and_no_duplicate(
    server: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Many pages, so that readers are cut off in the replay, at the head, and in the midst of live rows.
    monkeypatch.setattr(streams, "ROWS_PER_READ", 8)
    writer = await server.writer()
    reconnects = 0

    async def write() -> int:
        while reconnects < 1_000:
            await writer.deltas(random.randint(1, 5))
            await asyncio.sleep(0.02)
        return await writer.complete()

    async def read() -> list[int]:
        nonlocal reconnects
        seen: list[int] = []
        while not (writing.done() and seen[-1] == writing.result()):
            seen += await read_some(
                server.port,
                server.client.headers["authorization"],
                str(writer.run_id),
                after=seen[-1] if seen else 0,
                count=random.randint(1, 10) if reconnects < 1_000 else 1_000_000,
            )
            reconnects += 1
        return seen

    writing = asyncio.create_task(write())
    read_by_all = await asyncio.gather(*(read() for _ in range(10)))
    assert reconnects >= 1_000
    for seen in read_by_all:
        assert seen == list(range(1, writing.result() + 1))


async def test_inv_3_reader_ahead_of_the_feed_sees_nothing_twice(server: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads from the database what the feed, which others follow already, has yet to read."""
    writer = await server.writer()
    may_read, read_grown = asyncio.Event(), streams.StreamHub._read_grown

    async def read_when_it_may(*args: Any) -> None:
        await may_read.wait()
        await read_grown(*args)

    async with following(server.client, str(writer.run_id)) as first:
        seen_first = sequences(await first.take(1))
        await eventually(lambda: server.services.hub._feeds)
        monkeypatch.setattr(streams.StreamHub, "_read_grown", read_when_it_may)
        await writer.deltas(4)
        async with following(server.client, str(writer.run_id)) as second:
            seen_second = sequences(await second.take(5))
            await eventually(lambda: len(server.services.hub._feeds[writer.run_id].readers) == 2)
            last = await writer.complete()
            may_read.set()
            seen_second += sequences(await second.all())
        seen_first += sequences(await first.all())
    assert seen_first == seen_second == list(range(1, last + 1))


async def test_inv_3_lost_notifications_delay_a_reader_only(server: Host) -> None:
    writer = await server.writer(announces=False)
    async with following(server.client, str(writer.run_id)) as reader:
        await reader.take(1)
        last = await writer.deltas(3)
        assert sequences(await reader.take(3)) == list(range(2, last + 1))


async def test_inv_3_killed_listener_connection_loses_nothing(new_server: NewHost) -> None:
    server = await new_server()
    writer = await server.writer()
    async with following(server.client, str(writer.run_id)) as reader:
        seen = sequences(await reader.take(1))
        for _ in range(5):
            async with server.engine.begin() as connection:
                killed = await connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
                )
                assert killed.rowcount >= 1
            await writer.deltas(2)
            seen += sequences(await reader.take(2))
            await eventually(server.services.hub._listener._connected.is_set)
        last = await writer.complete()
        seen += sequences(await reader.all())
    assert seen == list(range(1, last + 1))


async def test_killed_reading_connection_loses_nothing(new_server: NewHost) -> None:
    server = await new_server()
    writer = await server.writer()
    async with following(server.client, str(writer.run_id)) as reader:
        seen = sequences(await reader.take(1))
        async with server.engine.begin() as connection:
            await connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'test-api'"
            )
        last = await writer.deltas(5)
        seen += sequences(await reader.take(5))
    assert seen == list(range(1, last + 1))


async def test_slow_reader_is_cut_off_and_resumes(server: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_WAITING_FRAMES", 300)
    before = readers_cut_off(server)
    writer = await server.writer()
    async with (
        following(server.client, str(writer.run_id)) as slow,
        following(server.client, str(writer.run_id)) as quick,
    ):
        seen = sequences(await slow.take(1))
        quick_seen = sequences(await quick.take(1))
        # Some 20 MB: more than all buffers between hub and client.
        last = 0
        for _ in range(40):
            last = await writer.deltas(50, "x" * 10_000)
            quick_seen += sequences(await quick.take(50))
        assert readers_cut_off(server) == before + 1
        assert quick_seen == list(range(1, last + 1))
        seen += sequences(await slow.all())
    assert seen == list(range(1, seen[-1] + 1))
    assert seen[-1] < last
    await writer.complete()
    async with following(server.client, str(writer.run_id), last_event_id=seen[-1]) as resumed:
        seen += sequences(await resumed.all())
    assert seen == list(range(1, last + 3))


async def test_silence_is_filled_with_pings(server: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PING_SECONDS", 0.05)
    monkeypatch.setattr(streams, "SWEEP_SECONDS", 0.02)
    writer = await server.writer()
    async with following(server.client, str(writer.run_id)) as reader:
        await reader.take(1)
        rest = asyncio.create_task(reader.all())
        await eventually(lambda: len(reader.comments) >= 2)
        await writer.complete()
        assert [frame.event for frame in await rest] == ["run.completed", "host.run_ended"]
    assert set(reader.comments) == {": ping"}


async def test_reader_that_leaves_leaves_nothing_behind(server: Host) -> None:
    """P-8, P-46: readers come and go; the run does not notice and nothing is kept for them."""
    writer = await server.writer()
    for _ in range(3):
        async with following(server.client, str(writer.run_id)) as reader:
            await reader.take(1)
            await eventually(lambda: len(server.services.hub._feeds) == 1)
        await eventually(lambda: not server.services.hub._feeds)
    run = (await server.client.get(f"/v1/runs/{writer.run_id}")).json()
    assert (run["status"], run["cancel_requested_at"]) == ("running", None)
    assert await writer.complete() == 3


async def test_two_replicas_show_the_same_run(new_server: NewHost) -> None:
    """F-21: what one process writes, the readers of another one see."""
    first, second = await new_server(), await new_server()
    writer = await first.writer()
    second.workspace = first.workspace
    client = await second.caller()
    async with following(first.client, str(writer.run_id)) as one, following(client, str(writer.run_id)) as two:
        await writer.deltas(20)
        last = await writer.complete()
        assert sequences(await one.all()) == sequences(await two.all()) == list(range(1, last + 1))


async def test_reader_that_was_cut_off_leaves_late_without_harm(host: Host) -> None:
    hub, run_id = host.services.hub, new_uuid()
    with hub._joined(run_id, 0) as slow:
        hub._feeds[run_id].readers.discard(slow)
        with hub._joined(run_id, 0):
            pass
        later = hub._joined(run_id, 0)
        later.__enter__()
    assert run_id in hub._feeds
    later.__exit__(None, None, None)
    assert run_id not in hub._feeds


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "", "999", "1" * 30, "+1", "\u0661".encode()])
async def test_bad_last_event_id_is_named(host: Host, value: str) -> None:
    run = await host.run()
    answer = await host.client.get(f"/v1/runs/{run['run_id']}/stream", headers={"Last-Event-ID": value})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "Last-Event-ID"


@pytest.mark.parametrize("value", ["x", "-1", "2", ""])
async def test_bad_after_is_named(host: Host, value: str) -> None:
    run = await host.run()
    answer = await host.client.get(f"/v1/runs/{run['run_id']}/stream", params={"after": value})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "after"


async def test_open_streams_end_when_the_server_stops(new_server: NewHost) -> None:
    server = await new_server()
    writer = await server.writer()
    async with following(server.client, str(writer.run_id)) as reader:
        await reader.take(1)
        assert server.server is not None
        server.server.should_exit = True
        async with asyncio.timeout(3):
            assert await reader.all() == []


async def test_client_that_takes_nothing_is_given_up(server: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_response, "STALLED_AFTER_SECONDS", 0.2)
    writer = await server.writer()
    for _ in range(40):
        await writer.deltas(50, "x" * 10_000)
    assert server.server is not None
    tasks = server.server.server_state.tasks
    before = len(tasks)
    _, connection = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    bearer = server.client.headers["authorization"]
    connection.write(f"GET /v1/runs/{writer.run_id}/stream HTTP/1.1\r\nAuthorization: {bearer}\r\n\r\n".encode())
    await eventually(lambda: len(tasks) > before)
    await eventually(lambda: len(tasks) == before)
    connection.close()
