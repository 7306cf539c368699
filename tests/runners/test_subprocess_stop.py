"""Ending programs: asked, told, killed, and with everything that they started (INV-8, SECURITY G-9)."""

import asyncio
import gc
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from runners.program import RunnerProgram
from runners.subprocess.session import ProgramSession
from runners.transport import StopReason
from tests.eventually import eventually
from tests.processes import is_alive
from tests.runners.programs import program_of, read_all, start_program

CHECKOUT = Path(__file__).resolve().parents[2]

DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"

# A child in the group; one that ignores SIGTERM; and one that was double-forked into a session of its own, without
# any variable or descriptor by which it could be told from anybody else's.
TREE = """
deaf = [sys.executable, "-I", "-S", "-c"]
deaf += ["import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"]
child = subprocess.Popen(["sleep", "600"])
ignoring = subprocess.Popen(deaf, stdout=subprocess.PIPE)
ignoring.stdout.readline()
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write_end, str(os.getpid()).encode())
        os.closerange(0, 100)
        os.execve(sys.executable, deaf, {})
    os._exit(0)
os.wait()
lost = int(os.read(read_end, 20))
result("tree", pids=[os.getpid(), child.pid, ignoring.pid, lost])
"""


async def tree_of(session: ProgramSession) -> list[int]:
    (result,) = await _batch(session)
    pids: list[int] = result["data"]["pids"]
    assert all(map(is_alive, pids))
    return pids


async def _batch(session: ProgramSession) -> list[Any]:
    return await session.next_batch()


async def test_cancelled_program_hears_why_and_says_its_last_words(tmp_path: Path) -> None:
    code = 'result("ready")\nmessage = read()\nresult("run.failed", code="cancelled", error=message["reason"])'
    session = start_program(program_of(tmp_path, code))
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.DEADLINE, 30))
    (last,) = await read_all(session)
    assert last["data"]["error"] == "deadline"
    assert await stop is None


async def test_program_that_does_not_listen_gets_sigterm(tmp_path: Path) -> None:
    code = """
def leave(*_):
    result("told")
    sys.exit(9)
signal.signal(signal.SIGTERM, leave)
result("ready")
time.sleep(600)
"""
    session = start_program(program_of(tmp_path, code), terminate_seconds=30)
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 0.05) is None
    assert [result["type"] for result in await read_all(session)] == ["told"]
    assert session.diagnostics()["exit"] == "exit code 9"


async def test_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, DEAF + 'result("ready")\ntime.sleep(600)'), terminate_seconds=0.05)
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 0.05) is None
    assert session.diagnostics()["exit"] == "SIGKILL"
    assert await read_all(session) == []


async def test_stopped_program_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, DEAF + TREE + "time.sleep(600)"), terminate_seconds=0.05)
    pids = await tree_of(session)
    assert await session.stop(StopReason.CANCELLED, 0.05) is None
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("end", [pytest.param("sys.exit(0)", id="ends"), pytest.param("os.abort()", id="crashes")])
async def test_program_that_ends_takes_what_it_started_with_it(tmp_path: Path, end: str) -> None:
    session = start_program(program_of(tmp_path, f"{TREE}read()\n{end}"))
    pids = await tree_of(session)
    assert await session.stop(StopReason.ENDED, 30) is None
    assert not any(map(is_alive, pids))


async def test_processes_that_keep_being_born_end_too(tmp_path: Path) -> None:
    code = """
if os.fork() == 0:
    while True:
        if os.fork():
            os._exit(0)
result("ready")
"""
    session = start_program(program_of(tmp_path, code), kill_seconds=10)
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 0) is None


async def test_killed_worker_takes_programs_and_their_processes_with_it(tmp_path: Path) -> None:
    """INV-8: nobody is left to stop anything, and yet nothing is left behind."""
    program_of(tmp_path, DEAF + TREE + "time.sleep(600)")
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.runners.subprocess_owner",
        str(tmp_path),
        cwd=CHECKOUT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    pids = [int(pid) for pid in (await worker.stdout.readline()).split()]
    assert len(pids) == 4
    assert all(map(is_alive, pids))
    worker.kill()
    await worker.wait()
    await eventually(lambda: not any(map(is_alive, pids)))


async def test_program_whose_last_result_was_read_finds_its_input_closed(tmp_path: Path) -> None:
    code = 'result("run.completed")\nassert read() is None\nsys.stderr.write("saw the end")'
    session = start_program(program_of(tmp_path, code))
    await session.next_batch()
    assert await session.stop(StopReason.ENDED, 30) is None
    assert session.diagnostics() == {"exit": "exit code 0", "stderr_bytes": 11, "stderr": "saw the end"}


async def test_stop_before_the_program_runs_ends_it(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, "time.sleep(600)"))
    assert await session.stop(StopReason.SHUTDOWN, 30) is None
    assert await read_all(session) == []


async def test_stop_can_be_called_twice_at_once(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, DEAF + 'result("ready")\ntime.sleep(600)'), terminate_seconds=0.05)
    await session.next_batch()
    patient, hasty = session.stop(StopReason.CANCELLED, 30), session.stop(StopReason.SHUTDOWN, 0)
    assert await asyncio.gather(patient, hasty) == [None, None]


async def test_cancelled_stop_skips_the_grace(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, DEAF + 'result("ready")\ntime.sleep(600)'))
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.CANCELLED, 600))
    await asyncio.sleep(0)
    stop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stop
    await eventually(lambda: session.gone)
    await read_all(session)


async def test_what_does_not_die_is_reported(tmp_path: Path) -> None:
    """No time at all to die stands for a process that the kernel cannot end."""
    code = DEAF + 'result("ready")\ntime.sleep(600)'
    session = start_program(program_of(tmp_path, code), terminate_seconds=0, kill_seconds=0)
    await session.next_batch()
    residual = await session.stop(StopReason.CANCELLED, 0)
    assert residual is not None
    assert residual.kind == "process"
    assert residual.detail == f"processes of plugin:test/programs/default do not die: {session.pid}"
    assert await read_all(session) == []
    await session.living


async def test_200_runs_leave_nothing(tmp_path: Path) -> None:
    call = '{"type":"call","id":1,"method":"state_get"}'
    script = f"""read run; echo '{call}'; read answer; echo '{{"type":"result","result":1}}'"""
    program = RunnerProgram(tmp_path, ("sh", "-c", script))
    # The first one makes what stays: the child watcher's own things.
    await _one(start_program(program))
    gc.collect()
    before = _held()
    for _ in range(20):
        await asyncio.gather(*(_one(start_program(program)) for _ in range(10)))
    gc.collect()
    descriptors, threads, has_children = _held()
    # Fewer is no leak: what an earlier test left to the collector may be gone by now.
    assert descriptors <= before[0]
    assert (threads, has_children) == before[1:]


async def _one(session: ProgramSession) -> None:
    assert len(await read_all(session)) == 1
    assert await session.stop(StopReason.ENDED, 30) is None


def _held() -> tuple[int, int, bool]:
    """Descriptors, threads, and whether there are children, ended or not."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        has_children = bool(_children())
    except ChildProcessError:
        has_children = False
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), has_children


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
