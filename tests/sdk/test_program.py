"""The same class in the worker and in a process of its own: what it yields, hears and calls."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runhost.protocol import AgentRunnerManifest, AgentRunResult, DynamicFormItemSchema, JsonObject
from runhost.sdk import AgentRunner
from runners.execution import ComponentExecution, PythonExecution, locate_execution
from runners.in_process import InProcessTransport
from runners.program import RunnerProgram
from runners.subprocess.session import ProgramLimits, ProgramRun, ProgramSession
from runners.transport import RunnerSession, StopReason
from tests.eventually import eventually
from tests.runners.contexts import read_until_error, registry_of, run_context, runner_id_of
from tests.runners.programs import FakeHost
from tests.sdk import program_runners

FOLDER = Path(__file__).parent


def in_worker(runner: type[AgentRunner], host: FakeHost) -> RunnerSession:
    registry = registry_of(runner)
    return InProcessTransport(registry).open(registry.get(runner_id_of(runner.__name__)), run_context(), host)


def start(
    place: str, host: FakeHost | None = None, *, folder: Path = FOLDER, config: JsonObject | None = None
) -> ProgramSession:
    command = (sys.executable, "-P", "-m", "runhost.sdk.program", place)
    form = [DynamicFormItemSchema(name="times", type="integer", default=3)]
    manifest = AgentRunnerManifest(id="plugin:a/b/c", name="c", label={"en_US": "C"}, config_schema=form)
    run = ProgramRun("plugin:a/b/c", manifest, RunnerProgram(folder, command), run_context(config=config))
    return ProgramSession(run, host or FakeHost(), ProgramLimits())


def in_program(runner: type[AgentRunner], host: FakeHost) -> RunnerSession:
    return start(f"program_runners.py:{runner.__name__}", host)


async def read_all(session: RunnerSession) -> list[dict[str, Any]]:
    """Read results, whichever form they have, without what differs from run to run."""
    found: list[dict[str, Any]] = []
    async for result in session.results():
        fields = result.model_dump(exclude_none=True) if isinstance(result, AgentRunResult) else result
        assert isinstance(fields, dict)
        found.append({name: fields[name] for name in ("type", "data")})
    return found


@pytest.mark.parametrize("runner", [program_runners.Talker, program_runners.Caller], ids=lambda runner: runner.__name__)
async def test_results_are_the_same_in_both_places(runner: type[AgentRunner]) -> None:
    seen: list[tuple[list[dict[str, Any]], list[Any]]] = []
    for open_session in (in_worker, in_program):
        host = FakeHost()
        session = open_session(runner, host)
        found = await read_all(session)
        assert await session.stop(StopReason.ENDED, 10) is None
        seen.append((found, host.calls))
    assert len(seen[0][0]) > 3
    assert seen[0] == seen[1]


async def test_what_is_printed_goes_to_standard_error() -> None:
    session = start("program_runners.py:Talker")
    await read_all(session)
    await session.stop(StopReason.ENDED, 10)
    assert session.diagnostics()["stderr"] == "this is no result"


async def test_results_are_numbered() -> None:
    """P-S3, P-S9: by the SDK, where the runner does not."""
    session = start("program_runners.py:Odd")
    found: list[Any] = [result async for result in session.results()]
    numbers = [result.get("sequence") if isinstance(result, dict) else None for result in found]
    assert numbers == [None, None, 1, None, 2, 7, 8]
    assert found[0] == 42
    assert found[1].startswith("what was yielded is no JSON")
    assert await session.stop(StopReason.ENDED, 10) is None


async def test_cancel_reaches_the_runner_where_it_awaits() -> None:
    host = FakeHost()
    session = start("program_runners.py:Waiter", host)
    await session.next_batch()
    await eventually(lambda: host.running == 1)
    stop = asyncio.create_task(session.stop(StopReason.DEADLINE, 30))
    (last,) = await read_all(session)
    assert last["data"] == {"code": "cancelled", "error": "deadline", "retryable": False}
    assert await stop is None
    assert host.cancelled == ["wait"]
    # It came to its end in order.
    assert session.diagnostics() == {}


async def test_cancel_reaches_the_runner_at_its_yield() -> None:
    session = start("program_runners.py:Flood")
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.CANCELLED, 30))
    *_, last = await read_all(session)
    assert last["type"] == "run.failed"
    assert await stop is None


async def test_sigterm_is_a_cancel() -> None:
    session = start("program_runners.py:Sleeper")
    await session.next_batch()
    assert session.pid is not None
    os.kill(session.pid, signal.SIGTERM)
    _, error = await read_until_error(session)
    # Nobody of the host has asked for it, so it must not pass for a good end.
    assert str(error).startswith("exit code 143")
    assert await session.stop(StopReason.ENDED, 10) is None


async def test_end_of_the_input_is_a_cancel() -> None:
    session = start("program_runners.py:Sleeper")
    await session.next_batch()
    assert await session.stop(StopReason.ENDED, 30) is None
    assert session.diagnostics()["exit"] == "exit code 143"


async def test_calls_that_are_given_up_are_cancelled_in_the_host() -> None:
    host = FakeHost()
    session = start("program_runners.py:GivesUp", host)
    assert len(await read_all(session)) == 3
    assert await session.stop(StopReason.ENDED, 10) is None
    assert host.cancelled == ["wait", "invoke_llm_stream"]


async def test_crash_comes_with_its_traceback() -> None:
    seen, error = await read_until_error(session := start("program_runners.py:Crasher"))
    assert len(seen) == 1
    assert str(error).startswith("exit code 1: Traceback")
    assert str(error).endswith("ValueError: no such thing")
    assert await session.stop(StopReason.ENDED, 10) is None


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        pytest.param("program_runners.py:NoGenerator", "run() must be an async generator", id="no-generator"),
        pytest.param("program_runners.py:FOLDER", "has no attribute 'FOLDER'", id="no-such-class"),
        pytest.param("program_runners.py:asyncio", "must be a subclass of AgentRunner", id="no-runner"),
        pytest.param("gone.py:Echo", "No module named", id="no-such-file"),
        pytest.param("Echo", "exit code 2: usage: ", id="no-place"),
    ],
)
async def test_class_that_cannot_be_run_is_named(place: str, reason: str) -> None:
    _, error = await read_until_error(session := start(place))
    assert reason in str(error)
    assert await session.stop(StopReason.ENDED, 10) is None


async def test_runner_gets_its_manifest_with_the_run() -> None:
    session = start("program_runners.py:Configured", config={"a": 1})
    message, _ = await read_all(session)
    assert message["data"]["message"]["content"] == "{'times': 3, 'a': 1}"
    await session.stop(StopReason.ENDED, 10)


async def test_runner_that_exits_has_crashed() -> None:
    _, error = await read_until_error(session := start("program_runners.py:Exiter"))
    assert str(error).endswith("RuntimeError: the runner called sys.exit()")
    assert await session.stop(StopReason.ENDED, 10) is None


async def test_class_can_be_named_by_its_module() -> None:
    session = start("runners.official.scripted.runner:ScriptedRunner")
    assert (await read_all(session))[-1]["type"] == "run.completed"
    assert await session.stop(StopReason.ENDED, 10) is None


async def test_modules_of_a_folder_find_each_other_and_shadow_nobody(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError")
    (tmp_path / "words.py").write_text("WORD = 'hi'")
    (tmp_path / "runner.py").write_text(
        "import json\n"
        "from runhost.sdk import AgentRunner, results\n"
        "from .words import WORD\n"
        "class R(AgentRunner):\n"
        "    async def run(self, ctx):\n"
        "        yield results.message(ctx, json.dumps(WORD))\n"
    )
    execution = ComponentExecution(python=PythonExecution(path="runner.py", attr="R"), process="separate")
    program = locate_execution(tmp_path / "runner.yaml", execution, None)
    assert isinstance(program, RunnerProgram)
    session = start(program.command[-1], folder=tmp_path)
    (message,) = await read_all(session)
    assert message["data"]["message"]["content"] == '"hi"'
    assert await session.stop(StopReason.ENDED, 10) is None


def test_program_serves_a_class_and_writes_to_files_too(tmp_path: Path) -> None:
    """By hand, without a host: messages that it does not know mean nothing to it."""
    manifest = {"id": "plugin:a/b/c", "name": "c", "label": {"en_US": "C"}}
    run = {"type": "run", "manifest": manifest, "context": run_context("hello").model_dump(mode="json")}
    code = "import sys; from runhost.sdk.program import serve; from tests.sdk.program_runners import Talker; "
    with (
        (tmp_path / "out").open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-c", f"{code}sys.exit(serve(Talker))"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=FOLDER.parents[1],
        ) as program,
    ):
        assert program.stdin is not None
        program.stdin.write(f"{json.dumps({'type': 'news'})}\n{json.dumps(run)}\n".encode())
        program.stdin.flush()
        assert program.wait() == 0
    lines = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert [line["result"]["sequence"] for line in lines] == [1, 2, 3, 4, 5]
