"""Runs inside the worker: order, back-pressure, crashes, stopping, and what is left behind."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from runhost.protocol import AgentRunResult, JsonObject, RunFailureCode
from runhost.sdk import AgentRunner
from runners.errors import RunnerCrashed, RunnerNotFound
from runners.in_process import InProcessLimits, InProcessSession, InProcessTransport
from runners.transport import RunnerSession, RunnerTransport, StopReason
from tests.eventually import eventually
from tests.runners import bad_runners
from tests.runners.contexts import read_until_error, registry_of, run_context, runner_id_of
from tests.runners.hosts import NO_HOST

LIMITS = InProcessLimits(buffered_results=16, blocked_after_seconds=0.3, build_seconds=1.0)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Every test ends with the threads it began with."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) - before == set()


@pytest.fixture(autouse=True)
def recorded() -> list[str]:
    bad_runners.Recording.events.clear()
    return bad_runners.Recording.events


def open_run(
    runner: type[AgentRunner], config: JsonObject | None = None, limits: InProcessLimits = LIMITS
) -> InProcessSession:
    registry = registry_of(runner)
    transport = InProcessTransport(registry, limits)
    return transport.open(registry.get(runner_id_of(runner.__name__)), run_context(config=config), NO_HOST)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def read_all(session: RunnerSession) -> list[object]:
    return [result async for result in session.results()]


async def test_results_come_in_order_and_end() -> None:
    session = open_run(bad_runners.Echo)
    message, end = await read_all(session)
    assert isinstance(message, AgentRunResult)
    assert isinstance(end, AgentRunResult)
    assert (message.type, end.type) == ("message.completed", "run.completed")
    assert await session.stop(StopReason.ENDED, 1) is None
    assert session.gone


async def test_ended_session_stays_ended() -> None:
    session = open_run(bad_runners.Echo)
    await read_all(session)
    assert await session.next_batch() == []
    assert await session.stop(StopReason.ENDED, 1) is None
    assert await session.stop(StopReason.CANCELLED, 1) is None


async def test_100_000_results_pass_complete_and_in_order() -> None:
    session = open_run(bad_runners.Counter, {"count": 100_000}, InProcessLimits())
    assert await read_all(session) == list(range(100_000))
    assert await session.stop(StopReason.ENDED, 1) is None


async def test_cancelled_reader_loses_no_result() -> None:
    session = open_run(bad_runners.Counter, {"count": 5_000})
    seen: list[object] = []
    while True:
        reader = asyncio.create_task(session.next_batch())
        await asyncio.sleep(0)
        reader.cancel()
        try:
            batch = await reader
        except asyncio.CancelledError:
            batch = await session.next_batch()
        if not batch:
            break
        seen += batch
    assert seen == list(range(5_000))
    await session.stop(StopReason.ENDED, 1)


async def test_runner_that_never_awaits_waits_for_its_reader() -> None:
    bad_runners.Endless.yielded = 0
    session = open_run(bad_runners.Endless)
    await eventually(lambda: bad_runners.Endless.yielded >= LIMITS.buffered_results)
    await asyncio.sleep(0.05)
    assert bad_runners.Endless.yielded == LIMITS.buffered_results
    await session.next_batch()
    await eventually(lambda: bad_runners.Endless.yielded == 2 * LIMITS.buffered_results)
    assert await session.stop(StopReason.REFUSED, 1) is None


async def test_runner_that_yields_without_awaiting_is_not_blocked() -> None:
    session = open_run(bad_runners.ManyShortTurns)
    assert await read_all(session) == list(range(20))
    await session.stop(StopReason.ENDED, 1)


async def test_each_run_has_a_thread_a_loop_and_a_clean_context_of_its_own() -> None:
    bad_runners.WORKER_SECRET.set("of the worker")
    registry = registry_of(bad_runners.ThreadNamer)
    transport = InProcessTransport(registry, LIMITS)
    descriptor = registry.get(runner_id_of("ThreadNamer"))
    contexts = [run_context(), run_context()]
    with structlog.contextvars.bound_contextvars(secret="of the worker"):
        sessions = [transport.open(descriptor, context, NO_HOST) for context in contexts]
        first, second = [await read_all(session) for session in sessions]
    assert first == [f"run-{contexts[0].run_id}", first[1], "nothing", {}]
    assert second == [f"run-{contexts[1].run_id}", second[1], "nothing", {}]
    assert len({first[1], second[1], id(asyncio.get_running_loop())}) == 3
    for session in sessions:
        assert await session.stop(StopReason.ENDED, 1) is None


@pytest.mark.parametrize(
    ("runner", "seen", "type_name", "message"),
    [
        pytest.param(bad_runners.Crash, ["before"], "ValueError", "the secret is out", id="raises"),
        pytest.param(
            bad_runners.CrashWithoutText,
            ["before"],
            "Unspeakable",
            "(its text cannot be had: RuntimeError)",
            id="raises-what-cannot-be-printed",
        ),
        pytest.param(bad_runners.SystemExiter, ["before"], "SystemExit", "3", id="exits"),
        pytest.param(bad_runners.Interrupter, ["before"], "KeyboardInterrupt", "", id="raises-interrupt"),
        pytest.param(bad_runners.SelfCancelled, ["before"], "CancelledError", "", id="cancels-itself"),
        pytest.param(bad_runners.RaisingCall, [], "LookupError", "before the first result", id="raises-when-called"),
        pytest.param(bad_runners.FailingConstructor, [], "RuntimeError", "no licence", id="constructor-raises"),
    ],
)
async def test_crash_comes_after_the_results_before_it(
    runner: type[AgentRunner], seen: list[object], type_name: str, message: str
) -> None:
    session = open_run(runner)
    results, error = await read_until_error(session)
    assert results == seen
    assert isinstance(error, RunnerCrashed)
    assert (error.type_name, error.message, error.code) == (type_name, message, RunFailureCode.RUNNER_ERROR)
    assert await session.stop(StopReason.ENDED, 1) is None


async def test_runner_cannot_stop_its_loop() -> None:
    session = open_run(bad_runners.LoopStopper)
    assert await read_all(session) == ["before", "after"]
    assert await session.stop(StopReason.ENDED, 1) is None


async def test_crash_names_the_line() -> None:
    session = open_run(bad_runners.Crash)
    _, error = await read_until_error(session)
    assert isinstance(error, RunnerCrashed)
    assert error.where.startswith("tests.runners.bad_runners:")
    assert error.where.endswith(" in Crash.run")
    await session.stop(StopReason.ENDED, 1)


@pytest.mark.parametrize(
    ("runner", "returned"),
    [
        pytest.param(bad_runners.PlainCoroutine, "coroutine", id="coroutine"),
        pytest.param(bad_runners.PlainGenerator, "generator", id="generator"),
    ],
)
async def test_run_that_is_no_async_generator_is_named(runner: type[AgentRunner], returned: str) -> None:
    session = open_run(runner)
    _, error = await read_until_error(session)
    assert "run() must be an async generator" in str(error)
    assert f"not return {returned}" in str(error)
    await session.stop(StopReason.ENDED, 1)


async def test_cancelled_runner_says_its_last_words(recorded: list[str]) -> None:
    session = open_run(bad_runners.PoliteSleeper)
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.CANCELLED, 5))
    (last,) = await read_all(session)
    assert isinstance(last, AgentRunResult)
    assert last.data["code"] == RunFailureCode.CANCELLED
    assert await stop is None
    assert recorded == ["resumed", "told cancelled", "cleaned up"]


async def test_runner_hears_of_the_stop_at_its_yield() -> None:
    session = open_run(bad_runners.CancelledAtYield)
    await session.next_batch()
    async with asyncio.timeout(10):
        assert await session.stop(StopReason.DEADLINE, 3_600) is None
    *_, last = await read_all(session)
    assert last == "last words"


async def test_stop_before_the_first_result_ends_in_order() -> None:
    session = open_run(bad_runners.Counter, {"count": 10})
    assert await session.stop(StopReason.SHUTDOWN, 5) is None
    assert await read_all(session) in ([], list(range(10)))


@pytest.mark.parametrize(
    "runner",
    [
        pytest.param(bad_runners.CancelSwallower, id="ignores-cancellation"),
        pytest.param(bad_runners.SlowCleaner, id="cleans-up-for-ever"),
        pytest.param(bad_runners.YieldsWhileClosed, id="yields-while-closed"),
    ],
)
async def test_runner_that_outlasts_its_grace_is_ended_by_force(runner: type[AgentRunner]) -> None:
    session = open_run(runner)
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 0.05) is None
    assert session.gone
    # Whatever it left must not complain when it is collected.
    gc.collect()


@pytest.mark.parametrize(
    ("runner", "count"),
    [
        pytest.param(bad_runners.PoliteSleeper, 2, id="ends-when-asked"),
        pytest.param(bad_runners.CancelSwallower, 1, id="ended-by-force"),
    ],
)
async def test_results_before_a_stop_can_still_be_read(
    recorded: list[str], runner: type[AgentRunner], count: int
) -> None:
    """FAULTS P-9: what was streamed before a cancel is not lost."""
    session = open_run(runner)
    await eventually(lambda: recorded == ["resumed"])
    assert await session.stop(StopReason.CANCELLED, 0.2) is None
    assert len(await read_all(session)) == count


async def test_stop_can_be_called_twice_at_once() -> None:
    session = open_run(bad_runners.CancelSwallower)
    await session.next_batch()
    patient = session.stop(StopReason.CANCELLED, 30)
    hasty = session.stop(StopReason.SHUTDOWN, 0)
    assert await asyncio.gather(patient, hasty) == [None, None]


async def test_cancelled_stop_skips_the_grace() -> None:
    session = open_run(bad_runners.CancelSwallower)
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.CANCELLED, 30))
    await asyncio.sleep(0.01)
    stop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stop
    await eventually(lambda: session.gone, within_seconds=5)


async def test_tasks_left_by_a_runner_are_ended(recorded: list[str]) -> None:
    """FAULTS P-8: nested work ends with the run."""
    session = open_run(bad_runners.LeavesTasks)
    assert await read_all(session) == ["done"]
    assert await session.stop(StopReason.ENDED, 1) is None
    assert recorded == ["task ended"]


async def test_blocking_call_that_goes_on_is_reported() -> None:
    session = open_run(bad_runners.LeavesBlockingCall, {"seconds": 0.5})
    await session.next_batch()
    residual = await session.stop(StopReason.CANCELLED, 5)
    assert residual is not None
    assert residual.kind == "blocking_calls"
    assert residual.detail.endswith("plugin:test/runners/LeavesBlockingCall that have not returned: 1")


async def test_blocking_calls_beyond_the_limit_take_turns() -> None:
    session = open_run(bad_runners.UsesThreads)
    assert await read_all(session) == [1, 2, 3, 4, 5, 6, 7, 8, 9] * 3
    assert await session.stop(StopReason.ENDED, 1) is None


async def test_runs_leave_no_descriptor_open() -> None:
    before = open_descriptors()
    for runner in (bad_runners.Echo, bad_runners.Crash, bad_runners.CancelSwallower):
        session = open_run(runner)
        await session.next_batch()
        await session.stop(StopReason.CANCELLED, 0)
    gc.collect()
    assert open_descriptors() == before


async def test_transport_forgets_runs_that_have_ended() -> None:
    registry = registry_of(bad_runners.Echo)
    transport = InProcessTransport(registry, LIMITS)
    descriptor = registry.get(runner_id_of("Echo"))
    sessions = [transport.open(descriptor, run_context(), NO_HOST) for _ in range(20)]
    assert transport.open_threads == 20
    for session in sessions:
        await read_all(session)
        await session.stop(StopReason.ENDED, 1)
    await eventually(lambda: transport.open_threads == 0)


async def test_open_refuses_a_runner_that_is_not_here() -> None:
    descriptor = registry_of(bad_runners.Echo).get(runner_id_of("Echo"))
    transport: RunnerTransport = InProcessTransport(registry_of())
    with pytest.raises(RunnerNotFound, match="plugin:test/runners/Echo"):
        transport.open(descriptor, run_context(), NO_HOST)
