"""Runners in process reach the host from their own thread."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from runhost.protocol import AgentAPIError, AgentAPIException, AgentRunContext, JsonObject
from runhost.sdk import AgentRunner
from runhost.sdk.connection import current_connection
from runners.in_process import InProcessLimits, InProcessSession, InProcessTransport
from runners.transport import StopReason
from tests.eventually import eventually
from tests.runners.contexts import registry_of, run_context, runner_id_of

LIMITS = InProcessLimits(buffered_results=16, blocked_after_seconds=1.0, build_seconds=1.0)


class RecordingHost:
    """Answers `state_get`, refuses `state_set`, never answers `state_list`, and streams on."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.events: list[str] = []
        self.sent = 0

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        self.threads.add(threading.get_ident())
        if method == "state_set":
            raise AgentAPIException(AgentAPIError(code="unauthorized", message="no"))
        if method == "state_list":
            self.events.append("called")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.events.append("cancelled")
                raise
        await asyncio.sleep(0)
        return {"method": method, **params}

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        owner = asyncio.current_task()
        try:
            for number in range(100_000):
                if params.get("fails_at") == number:
                    raise AgentAPIException(AgentAPIError(code="runtime_error", message="broken"))
                if params.get("ends_at") == number:
                    return
                self.sent += 1
                yield {"number": number}
        finally:
            self.events.append("closed" if asyncio.current_task() is owner else "closed by a stranger")


class Caller(AgentRunner):
    """Makes the calls that its config names."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        host = current_connection()
        yield threading.get_ident()
        calls: Any = ctx.config["calls"]
        for method in calls:
            try:
                yield await host.call(method, {"key": "k"})
            except AgentAPIException as error:
                yield error.error.code


class AtOnce(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        host = current_connection()
        answers = await asyncio.gather(*(host.call("state_get", {"n": number}) for number in range(200)))
        yield [answer["n"] for answer in answers]


class Impatient(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        try:
            async with asyncio.timeout(0.05):
                await current_connection().call("state_list", {})
        except TimeoutError:
            yield "gave up"


class Reader(AgentRunner):
    """Reads a stream, at most `config.take` of it."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        events = current_connection().stream("invoke_llm_stream", dict(ctx.config))
        read = 0
        try:
            async for event in events:
                yield event["number"]
                read += 1
                if read == ctx.config.get("take"):
                    break
        except AgentAPIException as error:
            yield error.error.code
        finally:
            await events.aclose()
        yield "done"


class Stubborn(AgentRunner):
    """Waits for an answer that never comes and ignores its cancellation."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        while True:
            try:
                yield await current_connection().call("state_list", {})
            except asyncio.CancelledError:
                continue
            except AgentAPIException:
                return


@pytest.fixture
def recording() -> RecordingHost:
    return RecordingHost()


def open_run(runner: type[AgentRunner], host: RecordingHost, **config: Any) -> InProcessSession:
    registry = registry_of(runner)
    transport = InProcessTransport(registry, LIMITS)
    return transport.open(registry.get(runner_id_of(runner.__name__)), run_context(config=config), host)


async def read_all(session: InProcessSession) -> list[object]:
    found = [result async for result in session.results()]
    assert await session.stop(StopReason.ENDED, 1) is None
    return found


async def test_calls_cross_to_the_loop_of_the_worker_and_back(recording: RecordingHost) -> None:
    thread, answer, code = await read_all(open_run(Caller, recording, calls=["state_get", "state_set"]))
    assert (answer, code) == ({"method": "state_get", "key": "k"}, "unauthorized")
    assert recording.threads == {threading.get_ident()} != {thread}


async def test_200_calls_at_once_get_their_own_answers(recording: RecordingHost) -> None:
    assert await read_all(open_run(AtOnce, recording)) == [list(range(200))]


async def test_call_that_the_runner_gives_up_is_cancelled_in_the_host(recording: RecordingHost) -> None:
    """F-16, P-8."""
    assert await read_all(open_run(Impatient, recording)) == ["gave up"]
    await eventually(lambda: recording.events == ["called", "cancelled"])


async def test_stream_arrives_whole_and_in_order(recording: RecordingHost) -> None:
    assert await read_all(open_run(Reader, recording, ends_at=1_000)) == [*range(1_000), "done"]
    await eventually(lambda: recording.events == ["closed"])


async def test_stream_that_the_runner_leaves_is_closed_in_the_host(recording: RecordingHost) -> None:
    assert await read_all(open_run(Reader, recording, take=3)) == [0, 1, 2, "done"]
    await eventually(lambda: recording.events == ["closed"])
    # A slow reader holds the source back: what was sent ahead is bounded.
    assert recording.sent < 1_000


async def test_refusal_in_a_stream_reaches_the_runner_behind_what_came_before(recording: RecordingHost) -> None:
    assert await read_all(open_run(Reader, recording, fails_at=2)) == [0, 1, "runtime_error", "done"]


async def test_cancelled_run_leaves_no_call_in_the_host(recording: RecordingHost) -> None:
    """F-16."""
    session = open_run(Caller, recording, calls=["state_list"])
    await eventually(lambda: recording.events == ["called"])
    assert await session.stop(StopReason.CANCELLED, 1) is None
    await eventually(lambda: recording.events == ["called", "cancelled"])


async def test_runner_that_is_broken_off_leaves_no_call_in_the_host(recording: RecordingHost) -> None:
    session = open_run(Stubborn, recording)
    await eventually(lambda: recording.events == ["called"])
    assert await session.stop(StopReason.CANCELLED, 0.2) is None
    await eventually(lambda: recording.events[-1] == "cancelled")


async def test_code_outside_a_run_is_told_that_there_is_no_host() -> None:
    with pytest.raises(RuntimeError, match="no host"):
        current_connection()
