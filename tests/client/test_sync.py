"""The blocking twin: what differs from the client whose code it shares."""

import asyncio
import inspect
import signal
import sys
import textwrap
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import closing
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import pytest

from runhost.client import (
    ApiProblem,
    BindingRequest,
    BindingScope,
    HostUnreachable,
    RetryPolicy,
    RunhostClient,
    RunRequest,
    SyncRunhostClient,
)
from runhost.client.wires import run_blocking
from runhost.protocol import AgentConfig, AgentEventEnvelope
from tests.client.stub import FAST, KEY, RUN_ID, HostStub, answer, cut, frames, problem, run, send_rows
from tests.eventually import eventually
from tests.fixtures.host import SCRIPTED
from tests.fixtures.live_host import LiveHost
from tests.fixtures.openai_stub import Reply, StubRequest

Result = TypeVar("Result")


def public(kind: type[Any]) -> dict[str, Callable[..., Any]]:
    return {name: item for name, item in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


async def blocking(url: str, use: Callable[[SyncRunhostClient], Result], retry: RetryPolicy = FAST) -> Result:
    """Use a blocking client in a thread, since the host of the test needs the loop."""

    def work() -> Result:
        with SyncRunhostClient(url, KEY, retry=retry) as client:
            return use(client)

    return await asyncio.to_thread(work)


def test_both_clients_have_the_same_methods() -> None:
    assert public(SyncRunhostClient).keys() == public(RunhostClient).keys()


@pytest.mark.parametrize("name", public(RunhostClient))
def test_both_clients_take_and_give_the_same(name: str) -> None:
    theirs, ours = public(RunhostClient)[name], public(SyncRunhostClient)[name]

    assert list(inspect.signature(ours).parameters.values()) == list(inspect.signature(theirs).parameters.values())
    returned, expected = get_type_hints(ours)["return"], get_type_hints(theirs)["return"]
    if get_origin(expected) is AsyncGenerator:
        assert get_origin(returned) is Generator
        assert get_args(returned)[0] == get_args(expected)[0]
    else:
        assert inspect.iscoroutinefunction(theirs)
        assert not inspect.iscoroutinefunction(ours)
        assert returned == expected


@pytest.mark.parametrize(
    "trouble",
    [cut, problem(503, "engine_unavailable", retryable=True, Retry_After="0"), answer(502, "a proxy's page")],
    ids=["cut", "unavailable", "proxy"],
)
async def test_write_is_repeated_under_the_same_key(host_stub: HostStub, trouble: Any) -> None:
    host_stub.play(trouble, trouble, answer(201, run()))

    created = await blocking(host_stub.url, lambda client: client.create_run(RunRequest(agent_id="a1")))

    assert created.run_id == RUN_ID
    keys = [request.headers["idempotency-key"] for request in host_stub.requests]
    assert (len(keys), len(set(keys))) == (3, 1)


async def test_wait_that_the_host_wants_longer_than_we_do_is_left_to_the_caller(host_stub: HostStub) -> None:
    host_stub.play(problem(429, "rate_limited", Retry_After="3600"))

    with pytest.raises(ApiProblem) as refusal:
        await blocking(host_stub.url, lambda client: client.get_run(RUN_ID))

    assert refusal.value.retry_after_seconds == 3600
    assert len(host_stub.requests) == 1


async def test_lost_connection_is_resumed_without_gap_or_duplicate(host_stub: HostStub) -> None:
    host_stub.play(frames(1, 2, cut_off=True), problem(503, "x"), frames(1, 2, 3), frames(4, 5, end=True))

    found = await blocking(host_stub.url, lambda client: [row.sequence for row in client.follow_run(RUN_ID)])

    assert found == [1, 2, 3, 4, 5]
    assert [request.headers.get("last-event-id") for request in host_stub.requests] == [None, "2", "2", "3"]


async def test_host_that_stays_away_is_given_up(host_stub: HostStub) -> None:
    host_stub.play(frames(1, cut_off=True), cut)

    with pytest.raises(HostUnreachable):
        await blocking(host_stub.url, lambda client: list(client.follow_run(RUN_ID)))


async def test_reader_that_stops_closes_its_connection(host_stub: HostStub) -> None:
    gone = asyncio.Event()

    async def endless(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await send_rows(reply, 1)
        await reply.until_disconnected()
        gone.set()

    def read_one(client: SyncRunhostClient) -> int:
        with closing(client.follow_run(RUN_ID)) as events:
            return next(events).sequence

    host_stub.play(endless)

    assert await blocking(host_stub.url, read_one) == 1
    await eventually(gone.is_set)


async def test_many_threads_share_one_client(host_stub: HostStub) -> None:
    host_stub.play(answer(200, run()))
    with SyncRunhostClient(host_stub.url, KEY, retry=FAST) as client:
        runs = await asyncio.gather(*(asyncio.to_thread(client.get_run, RUN_ID) for _ in range(20)))

    assert {found.run_id for found in runs} == {RUN_ID}
    assert len(host_stub.requests) == 20


async def test_code_with_an_event_loop_may_use_it(host_stub: HostStub) -> None:
    host_stub.play(frames(1), frames(2, end=True))

    def loop_of_its_own() -> list[int]:
        async def work() -> list[int]:
            with SyncRunhostClient(host_stub.url, KEY, retry=FAST) as client:
                return [row.sequence for row in client.follow_run(RUN_ID)]

        return asyncio.run(work())

    assert await asyncio.to_thread(loop_of_its_own) == [1, 2]


PROGRAM = """
import sys
from runhost.client import RetryPolicy, SyncRunhostClient

patient = RetryPolicy(first_delay_seconds=60, max_delay_seconds=60)
with SyncRunhostClient(sys.argv[1], "rh_test", retry=patient) as client:
    try:
        {use}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("use", "answered"),
    [("list(client.follow_run('r'))", True), ("client.get_run('r')", True), ("client.get_run('r')", False)],
    ids=["following", "waiting for an answer", "waiting to try again"],
)
async def test_interrupt_ends_whatever_blocks(host_stub: HostStub, use: str, answered: bool) -> None:
    asked = asyncio.Event()

    async def hold(_request: StubRequest, reply: Reply) -> None:
        if "follow" in use:
            await reply.start_stream()
            await send_rows(reply, 1)
        asked.set()
        if answered:
            await reply.until_disconnected()
        else:
            reply.reset()

    host_stub.play(hold)
    program = textwrap.dedent(PROGRAM).format(use=use)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, host_stub.url, stdout=asyncio.subprocess.PIPE
    )
    try:
        await asked.wait()
        process.send_signal(signal.SIGINT)
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert output == b"interrupted\n"
    assert process.returncode == 0


def test_wait_for_a_loop_is_a_bug_that_shows() -> None:
    work: Coroutine[Any, Any, None] = asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run_blocking(work)


async def test_message_becomes_a_run_that_is_followed_to_its_end(live_host: LiveHost) -> None:
    """Against the real API: one turn of a platform plugin."""
    name = uuid.uuid4().hex
    scope = BindingScope(scope_type="bot", scope_id=name)
    message = AgentEventEnvelope.model_validate(
        {
            "event_id": name,
            "event_type": "message.received",
            "source": "platform",
            "bot_id": name,
            "conversation_id": name,
            "input": {"text": "hello wide world"},
            "delivery": {"surface": "test"},
        }
    )

    def converse() -> tuple[list[str], list[str | None]]:
        with SyncRunhostClient(live_host.url, live_host.key, retry=FAST) as client:
            client.put_agent(name, AgentConfig(runner_id=SCRIPTED))
            client.put_binding(name, BindingRequest(agent_id=name, scope=scope))
            receipt = client.send_event(message)
            assert receipt.run_id is not None
            types = [event.type for event in client.follow_run(receipt.run_id)]
            return types, [item.content for item in client.transcript(name).items]

    types, transcript = await asyncio.to_thread(converse)

    assert types[-1] == "host.run_ended"
    assert transcript == ["hello wide world", "hello wide world"]
