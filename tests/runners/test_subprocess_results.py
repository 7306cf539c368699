"""Programs as runners: what they are given, what they yield, and who waits for whom."""

from pathlib import Path

import pytest

from runhost.protocol import AgentRunContext, AgentRunResult
from runners.errors import RunnerNotFound
from runners.in_process import InProcessTransport
from runners.manifest import DiscoveredRunner, load_manifest
from runners.registry import RunnerRegistry
from runners.routing import RoutingTransport
from runners.subprocess.session import ProgramSession
from runners.subprocess.transport import SubprocessTransport
from runners.transport import RunnerTransport, StopReason
from tests.eventually import eventually
from tests.runners.contexts import run_context
from tests.runners.manifests import manifest_with, write_runner
from tests.runners.programs import (
    PREAMBLE,
    RUNNER_ID,
    FakeHost,
    play,
    program_of,
    read_all,
    start_program,
    start_shell,
)

FLOOD = """
for number in range(5_000):
    result("message.delta", chunk={"role": "assistant", "content": str(number)})
result("run.completed", finish_reason="stop")
"""


async def test_results_come_in_order_and_end(tmp_path: Path) -> None:
    results = await play(tmp_path, 'result("a.b", n=1)\nresult("a.b", n=2)\nresult("run.completed")')
    assert results == [{"n": 1}, {"n": 2}, {}]


async def test_first_message_holds_runner_manifest_and_context(tmp_path: Path) -> None:
    (message,) = await play(tmp_path, 'result("seen", **run)', text="grüße 你好 \ud800", config={"a": [1, None]})
    assert (message["type"], message["runner_id"]) == ("run", RUNNER_ID)
    assert message["manifest"]["id"] == RUNNER_ID
    context = AgentRunContext.model_validate(message["context"])
    assert context.run_id == message["run_id"]
    assert context.config == {"a": [1, None]}
    assert context.input.text == "grüße 你好 \ud800"


async def test_program_runs_in_the_folder_of_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    (seen,) = await play(tmp_path, 'result("seen", files=os.listdir("."))')
    assert "here" in seen["files"]


async def test_program_has_a_session_and_a_group_of_its_own(tmp_path: Path) -> None:
    (ids,) = await play(tmp_path, 'result("seen", ids=[os.getpid(), os.getpgid(0), os.getsid(0)])')
    assert len(set(ids["ids"])) == 1


async def test_program_inherits_no_descriptor_but_the_three(tmp_path: Path) -> None:
    (seen,) = await play(tmp_path, 'result("seen", open=sorted(map(int, os.listdir("/proc/self/fd"))))')
    # The fourth is the one that lists them.
    assert seen["open"] == [0, 1, 2, 3]


async def test_result_is_handed_over_as_it_was_written(tmp_path: Path) -> None:
    """D-23: whether a result is right is judged where all results are judged."""
    session = start_program(program_of(tmp_path, 'write(type="result", result=[1, float("nan")])'))
    (value,) = await read_all(session)
    assert str(value) == "[1, nan]"
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_exit_with_0_and_no_last_result_is_an_end(tmp_path: Path) -> None:
    assert await play(tmp_path, "pass") == []


async def test_blank_lines_are_nothing(tmp_path: Path) -> None:
    session = start_shell(tmp_path, """printf '\n  \n{"type":"result","result":1}\n\n'""")
    assert await read_all(session) == [1]
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_result_of_5_mb_passes(tmp_path: Path) -> None:
    """Too large for the ledger, which rejects it there like that of any runner (D-28)."""
    (data,) = await play(tmp_path, 'result("big", text="x" * 5_000_000)')
    assert len(data["text"]) == 5_000_000


async def test_ended_session_stays_ended(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, 'result("run.completed")'))
    await read_all(session)
    assert await session.next_batch() == []
    assert await session.stop(StopReason.ENDED, 5) is None
    assert await session.stop(StopReason.CANCELLED, 5) is None
    assert session.gone


async def test_program_waits_while_nobody_reads_its_results(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, FLOOD), buffered_results=16)
    batches: list[list[object]] = []
    while batch := await session.next_batch():
        batches.append(batch)
    assert sum(map(len, batches)) == 5_001
    assert max(map(len, batches)) <= 16
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_large_results_wait_by_their_bytes(tmp_path: Path) -> None:
    code = 'for _ in range(20):\n    result("big", text="x" * 100_000)'
    session = start_program(program_of(tmp_path, code), buffered_bytes=250_000)
    sizes: list[int] = []
    while batch := await session.next_batch():
        sizes.append(len(batch))
    assert sum(sizes) == 20
    assert max(sizes) <= 3
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_results_before_a_stop_can_still_be_read(tmp_path: Path) -> None:
    """FAULTS P-9: what was streamed before a cancel is not lost, be it still in the pipe."""
    code = """
for number in range(100):
    result("a.b", n=number)
open("written", "w").close()
time.sleep(600)
"""
    session = start_program(program_of(tmp_path, code), buffered_results=16)
    await eventually((tmp_path / "written").exists)
    assert await session.stop(StopReason.CANCELLED, 0) is None
    assert [result["data"]["n"] for result in await read_all(session)] == list(range(100))


async def test_unread_flood_can_be_stopped(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, FLOOD), buffered_results=16)
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 0) is None
    assert len(await read_all(session)) < 5_000


def registry_of(*manifests: Path) -> RunnerRegistry:
    found: list[DiscoveredRunner] = [load_manifest(file) for file in manifests]
    return RunnerRegistry(lambda: found)


def write_program(folder: Path, code: str) -> Path:
    manifest = manifest_with("execution", {"command": ["./run.py"]})
    file = write_runner(folder, manifest)
    script = folder / "run.py"
    script.write_text(f"#!/usr/bin/env python3\n{PREAMBLE}{code}")
    script.chmod(0o755)
    return file


async def test_registry_leads_each_runner_to_its_transport(tmp_path: Path) -> None:
    code_file = write_runner(tmp_path / "code", manifest_with("metadata.plugin", "code"))
    registry = registry_of(code_file, write_program(tmp_path / "program", 'result("run.completed")'))
    transport: RunnerTransport = RoutingTransport(
        registry, in_process=InProcessTransport(registry), programs=SubprocessTransport(registry)
    )
    for plugin, kind in (("code", AgentRunResult), ("echo", dict)):
        session = transport.open(registry.get(f"plugin:acme/{plugin}/default"), run_context(), FakeHost())
        (end,) = [result async for result in session.results()]
        assert isinstance(end, kind)
        assert await session.stop(StopReason.ENDED, 5) is None


async def test_transport_forgets_programs_that_have_ended(tmp_path: Path) -> None:
    registry = registry_of(write_program(tmp_path, 'result("run.completed")'))
    transport = SubprocessTransport(registry)
    session = transport.open(registry.get("plugin:acme/echo/default"), run_context(), FakeHost())
    assert isinstance(session, ProgramSession)
    assert transport.open_programs == 1
    await read_all(session)
    await session.stop(StopReason.ENDED, 5)
    await eventually(lambda: transport.open_programs == 0)


async def test_transport_refuses_what_is_no_program(tmp_path: Path) -> None:
    registry = registry_of(write_runner(tmp_path))
    descriptor = registry.get("plugin:acme/echo/default")
    with pytest.raises(RunnerNotFound, match="plugin:acme/echo/default"):
        SubprocessTransport(registry).open(descriptor, run_context(), FakeHost())


async def test_program_is_not_loaded_as_code(tmp_path: Path) -> None:
    registry = registry_of(write_program(tmp_path, ""))
    with pytest.raises(Exception, match="program of its own"):
        registry.registered("plugin:acme/echo/default").instance()
