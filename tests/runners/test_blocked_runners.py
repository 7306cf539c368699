"""Runners that hold their event loop: named, failed, interrupted; nobody else notices."""

import asyncio
from pathlib import Path

import pytest

from runhost.protocol import RunFailureCode
from runhost.sdk import AgentRunner
from runners.code import RunnerCode
from runners.errors import RunnerBlocked, RunnerCrashed
from runners.in_process import InProcessLimits, InProcessSession, InProcessTransport
from runners.registry import RunnerRegistry
from runners.transport import StopReason
from tests.eventually import eventually
from tests.runners import bad_runners
from tests.runners.contexts import discovered, read_until_error, registry_of, run_context, runner_id_of
from tests.runners.hosts import NO_HOST

LIMITS = InProcessLimits(blocked_after_seconds=0.3, build_seconds=1.0, force_seconds=0.1)


def transport_of(*runners: type[AgentRunner]) -> tuple[InProcessTransport, RunnerRegistry]:
    registry = registry_of(*runners)
    return InProcessTransport(registry, LIMITS), registry


async def read_until_blocked(session: InProcessSession) -> tuple[list[object], RunnerBlocked]:
    seen, error = await read_until_error(session)
    assert isinstance(error, RunnerBlocked)
    return seen, error


def test_default_limits_name_a_blocked_runner_within_5_seconds() -> None:
    limits = InProcessLimits()
    # The turn is first seen one look late at most, and judged one look late at most.
    assert limits.blocked_after_seconds + 2 * limits.look_seconds <= 5


async def test_busy_loop_is_named_and_interrupted() -> None:
    transport, registry = transport_of(bad_runners.BusyLoop)
    session = transport.open(registry.get(runner_id_of("BusyLoop")), run_context(), NO_HOST)
    seen, error = await read_until_blocked(session)
    assert seen == ["started"]
    assert error.code == RunFailureCode.RUNNER_BLOCKED
    assert "tests.runners.bad_runners:" in error.frame
    assert "BusyLoop.run" in error.frame
    assert "asyncio.to_thread" in str(error)
    assert await session.stop(StopReason.ENDED, 0) is None
    assert session.gone


async def test_busy_loop_that_survives_interrupts_is_interrupted_again() -> None:
    bad_runners.StubbornBusyLoop.survived = 0
    transport, registry = transport_of(bad_runners.StubbornBusyLoop)
    session = transport.open(registry.get(runner_id_of("StubbornBusyLoop")), run_context(), NO_HOST)
    await read_until_blocked(session)
    await eventually(lambda: session.gone)
    assert bad_runners.StubbornBusyLoop.survived >= 3
    assert transport.condemned_threads == 0


async def test_call_that_cannot_be_interrupted_is_left_and_reported() -> None:
    transport, registry = transport_of(bad_runners.BlockedInCall)
    session = transport.open(registry.get(runner_id_of("BlockedInCall")), run_context(config={"seconds": 1.2}), NO_HOST)
    seen, error = await read_until_blocked(session)
    assert seen == ["started"]
    assert "BlockedInCall.run" in error.frame
    residual = await session.stop(StopReason.ENDED, 30)
    assert residual is not None
    assert residual.kind == "thread"
    assert "BlockedInCall.run" in residual.detail
    assert transport.condemned_threads == 1
    await eventually(lambda: session.gone)
    await eventually(lambda: transport.open_threads == 0)


async def test_stop_reports_a_call_that_it_finds_blocked() -> None:
    transport, registry = transport_of(bad_runners.BlockedInCall)
    session = transport.open(registry.get(runner_id_of("BlockedInCall")), run_context(config={"seconds": 0.8}), NO_HOST)
    await session.next_batch()
    residual = await session.stop(StopReason.CANCELLED, 0.05)
    assert residual is not None
    assert residual.kind == "thread"
    await eventually(lambda: session.gone)
    assert [result async for result in session.results()] == []


async def test_other_runs_do_not_notice_blocked_ones() -> None:
    """FAULTS P-48: one hung runner takes nobody else down."""
    transport, registry = transport_of(bad_runners.BlockedInCall, bad_runners.BusyLoop, bad_runners.Echo)
    bad = [
        transport.open(registry.get(runner_id_of("BlockedInCall")), run_context(config={"seconds": 1.0}), NO_HOST),
        transport.open(registry.get(runner_id_of("BusyLoop")), run_context(), NO_HOST),
    ]
    failures = asyncio.gather(*(read_until_blocked(session) for session in bad))
    while not failures.done():
        session = transport.open(registry.get(runner_id_of("Echo")), run_context(), NO_HOST)
        assert len([result async for result in session.results()]) == 2
        assert await session.stop(StopReason.ENDED, 1) is None
    for session in bad:
        await session.stop(StopReason.ENDED, 0)
    await eventually(lambda: all(session.gone for session in bad))


def registry_of_folder(folder: Path, code: str) -> RunnerRegistry:
    (folder / "runner.py").write_text(code)
    found = [discovered("Imported", RunnerCode(folder.resolve(), "runner", "Imported"))]
    return RunnerRegistry(lambda: found)


GOOD_CLASS = """
from runhost.sdk import AgentRunner, results
class Imported(AgentRunner):
    async def run(self, ctx):
        yield results.completed(ctx)
"""


async def test_slow_import_is_not_blocking(tmp_path: Path) -> None:
    slow = GOOD_CLASS.replace("yield", "time.sleep(0.2)\n        yield")
    registry = registry_of_folder(tmp_path, f"import time; time.sleep(0.6)\n{slow}")
    session = InProcessTransport(registry, LIMITS).open(registry.get(runner_id_of("Imported")), run_context(), NO_HOST)
    assert len([result async for result in session.results()]) == 1
    await session.stop(StopReason.ENDED, 1)


async def test_import_that_never_ends_is_named(tmp_path: Path) -> None:
    registry = registry_of_folder(tmp_path, "while True:\n    pass\n")
    session = InProcessTransport(registry, LIMITS).open(registry.get(runner_id_of("Imported")), run_context(), NO_HOST)
    _, error = await read_until_blocked(session)
    assert "runner:" in error.frame
    assert await session.stop(StopReason.ENDED, 1) is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param("import no_such_module", "ModuleNotFoundError: No module named", id="import-fails"),
        pytest.param("def", "SyntaxError", id="syntax-error"),
        pytest.param("raise SystemExit(1)", "SystemExit: 1", id="exits"),
        pytest.param("", "has no 'Imported'", id="no-such-class"),
        pytest.param("Imported = 3", "must be a subclass of AgentRunner", id="no-class"),
        pytest.param("class Imported: pass", "must be a subclass of AgentRunner", id="other-class"),
        pytest.param(
            "from runhost.sdk import AgentRunner\nclass Imported(AgentRunner): pass",
            "Can't instantiate abstract class",
            id="abstract",
        ),
    ],
)
async def test_code_that_cannot_be_loaded_fails_the_run(tmp_path: Path, code: str, reason: str) -> None:
    registry = registry_of_folder(tmp_path, code)
    session = InProcessTransport(registry, LIMITS).open(registry.get(runner_id_of("Imported")), run_context(), NO_HOST)
    with pytest.raises(RunnerCrashed) as caught:
        await session.next_batch()
    assert reason in str(caught.value)
    assert await session.stop(StopReason.ENDED, 1) is None


async def test_code_that_was_mended_works_at_the_next_run(tmp_path: Path) -> None:
    registry = registry_of_folder(tmp_path, "import no_such_module")
    transport = InProcessTransport(registry, LIMITS)
    descriptor = registry.get(runner_id_of("Imported"))
    first = transport.open(descriptor, run_context(), NO_HOST)
    with pytest.raises(RunnerCrashed):
        await first.next_batch()
    await first.stop(StopReason.ENDED, 1)
    (tmp_path / "runner.py").write_text(GOOD_CLASS)
    second = transport.open(descriptor, run_context(), NO_HOST)
    assert len([result async for result in second.results()]) == 1
    await second.stop(StopReason.ENDED, 1)
