"""Programs in a real worker: how a run ends when its program crashes, babbles, or is cancelled."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.fixtures.host import WorkingHost
from tests.processes import is_alive
from tests.runners.manifests import manifest_with, write_runner
from tests.runners.programs import PREAMBLE

RUNNER_ID = "plugin:acme/echo/default"


def write_program(folder: Path, code: str) -> Path:
    write_runner(folder, manifest_with("execution", {"command": ["python3", "program.py"]}))
    (folder / "program.py").write_text(PREAMBLE + code)
    return folder


@pytest.mark.parametrize(
    ("code", "failure", "reason"),
    [
        pytest.param(
            'sys.stderr.write("went wrong")\nsys.exit(3)', "runner.error", "exit code 3: went wrong", id="crashes"
        ),
        pytest.param(
            'print("Hello")', "runner.protocol", "the program wrote a line that is no JSON: 'Hello'", id="babbles"
        ),
    ],
)
async def test_run_ends_with_what_the_program_did(
    working_host: WorkingHost, tmp_path: Path, code: str, failure: str, reason: str
) -> None:
    folder = write_program(tmp_path, code)
    async with working_host.worker(runner_paths=(folder,)):
        run = await working_host.finish(runner_id=RUNNER_ID)
    assert (run.status, run.status_code, run.status_reason) == ("failed", failure, reason)


async def test_standard_error_stands_in_the_ledger(working_host: WorkingHost, tmp_path: Path) -> None:
    folder = write_program(tmp_path, 'sys.stderr.write("x" * 5_000 + "\\0 the end")\nsys.exit(1)')
    async with working_host.worker(runner_paths=(folder,)):
        run = await working_host.finish(runner_id=RUNNER_ID)
    found = [row.data["diagnostics"] for row in await working_host.ledger(run.run_id) if "diagnostics" in row.data]
    assert found == [{"exit": "exit code 1", "stderr_bytes": 5_009, "stderr": "x" * 5_000 + "\0 the end"}]


async def test_standard_error_of_a_runner_that_ends_well_stands_in_the_ledger(
    working_host: WorkingHost, tmp_path: Path
) -> None:
    code = """
sys.stderr.write("a word to the operator")
sys.stderr.flush()
call(1, "get_langbot_version")
read()
result("run.completed", finish_reason="stop", message={"role": "assistant", "content": "x"})
"""
    folder = write_program(tmp_path, code)
    async with working_host.worker(runner_paths=(folder,)):
        run = await working_host.finish(runner_id=RUNNER_ID)
    assert run.status == "completed"
    found: list[Any] = [row.data.get("diagnostics") for row in await working_host.ledger(run.run_id)]
    assert [diagnostics["stderr"] for diagnostics in found if diagnostics] == ["a word to the operator"]


async def test_class_in_a_process_of_its_own_reaches_the_host(working_host: WorkingHost, tmp_path: Path) -> None:
    """The same class as in the worker, with the same proxy."""
    code = """
import os
from runhost.sdk import AgentAPIException, AgentRunner, results

class Echo(AgentRunner):
    async def run(self, ctx):
        api = self.get_run_api(ctx)
        await api.state_set("actor", "seen", [ctx.input.text])
        yield results.message(ctx, f"{await api.state_get('actor', 'seen')} {os.getpid()}")
        try:
            await api.get_file("nobody's")
        except AgentAPIException as refused:
            yield results.message(ctx, refused.error.code)
        yield results.completed(ctx)
"""
    execution = {"python": {"path": "runner.py", "attr": "Echo"}, "process": "separate"}
    write_runner(tmp_path, manifest_with("execution", execution), code)
    async with working_host.worker(runner_paths=(tmp_path,)):
        run = await working_host.finish(runner_id=RUNNER_ID)
    assert (run.status, run.status_reason) == ("completed", None)
    *_, seen, refused = await working_host.transcript()
    assert seen.content.startswith("['hello'] ")
    assert not seen.content.endswith(f" {os.getpid()}")
    assert refused.content == "unauthorized"


async def test_cancelled_run_leaves_no_process(working_host: WorkingHost, tmp_path: Path) -> None:
    """INV-8: a program that listens to nothing ends all the same, and so does its child."""
    code = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
result("message.delta", chunk={"role": "assistant", "content": f"{os.getpid()} {child.pid}"})
time.sleep(600)
"""
    folder = write_program(tmp_path, code)
    async with working_host.worker(runner_paths=(folder,)):
        run = await working_host.new_run(runner_id=RUNNER_ID)
        handle = await working_host.start(run)

        async def pids() -> list[int]:
            rows: list[Any] = [row for row in await working_host.ledger(run.run_id) if row.type == "message.delta"]
            return [int(pid) for row in rows for pid in row.data["chunk"]["content"].split()]

        running = await eventually(pids)
        assert all(map(is_alive, running))
        await handle.cancel()

        async def is_over() -> bool:
            return (await working_host.run(run.run_id)).status == "cancelled"

        await eventually(is_over, within_seconds=30)
        assert not any(map(is_alive, running))
