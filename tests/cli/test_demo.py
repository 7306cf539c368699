import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from runhost.cli import demo_agent
from runhost.cli.demo_agent import LanguageModel
from runhost.embedded import DataDirectory, StartFailed
from runners.official.openai_chat.config import read_config
from runners.official.scripted.script import read_script
from tests.eventually import eventually

# They start whole hosts; one after the other they take less time.
pytestmark = pytest.mark.timeout(240)

FAKE_SERVER = """
import http.server, sys

class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Healthy).serve_forever()
"""

Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def start(data_path: Path) -> AsyncIterator[Start]:
    """Start the demo with a folder of this test for all that it makes."""
    started: list[asyncio.subprocess.Process] = []

    async def start_demo(*options: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "runhost.cli", "demo", *options),
            env={**os.environ, "TMPDIR": str(data_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start_demo
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def left_over(path: Path) -> list[str]:
    """Find processes that have to do with a folder, and what is in it."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(path) in line] + [entry.name for entry in path.iterdir()]


def fake_checkout(path: Path, server: str | None) -> Path:
    """Make a checkout whose model server is this program; there is none without one."""
    package = path / "examples" / "language_model"
    package.mkdir(parents=True)
    # Without it, Python would prefer the package of the real checkout.
    (path / "examples" / "__init__.py").touch()
    if server is not None:
        (package / "__main__.py").write_text(server)
    return path


async def test_demo_shows_a_whole_run_and_leaves_nothing(start: Start, data_path: Path) -> None:
    process = await start("--scripted", "--message", "Hello ✓")

    stdout, stderr = await process.communicate()

    assert process.returncode == 0, stderr.decode()
    *lines, last = stdout.decode().splitlines()
    outcome = json.loads(last)
    assert set(outcome) == {"run_id", "status", "results", "deltas", "contiguous", "first_delta_ms"}
    assert (outcome["status"], outcome["contiguous"]) == ("completed", True)
    assert outcome["deltas"] > 5
    assert outcome["results"] == outcome["deltas"] + 2
    assert outcome["first_delta_ms"] > 0
    text = "\n".join(lines)
    assert "You:   Hello ✓" in text
    assert f"Agent: {demo_agent.SCRIPT_TEXT}\n" in text
    assert "host.run_ended" in text
    assert f"/namespaces/default/workflows/run-{outcome['run_id']}\n" in text
    assert left_over(data_path) == []


async def test_ctrl_c_while_it_starts_leaves_nothing(start: Start, data_path: Path) -> None:
    process = await start()
    await eventually(lambda: list(data_path.glob("*/host/temporal.db")), 120)

    process.send_signal(signal.SIGINT)
    stdout, stderr = await process.communicate()

    assert (process.returncode, stdout) == (130, b"")
    assert b"Stopping" in stderr
    assert b"Traceback" not in stderr
    assert left_over(data_path) == []


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('engine cannot load on this processor: killed by SIGILL')", "killed by SIGILL"),
        (None, "No module named"),
    ],
    ids=["cannot load", "not there"],
)
async def test_model_that_cannot_run_says_why(
    data_directory: DataDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, reason: str
) -> None:
    monkeypatch.setattr(demo_agent, "CHECKOUT", fake_checkout(tmp_path, program))
    model = LanguageModel(data_directory)

    with pytest.raises(StartFailed) as failure:
        await model.start()
    await model.stop()

    assert reason in str(failure.value).rpartition("\n")[2]


async def test_demo_without_model_plays_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    from runhost.cli.demo_play import Stage, choose_agent

    async def fail() -> None:
        raise StartFailed("model", "it ended with code 3", Path("model.log"), "noise\nengine cannot load")

    agent = await choose_agent(asyncio.ensure_future(fail()), Stage(as_json=False))  # type: ignore[arg-type]

    assert agent.runner_id == demo_agent.SCRIPTED_RUNNER
    assert "The language model does not run on this machine: engine cannot load." in capsys.readouterr().out


async def test_model_server_is_whom_the_agent_asks(
    data_directory: DataDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_agent, "CHECKOUT", fake_checkout(tmp_path, FAKE_SERVER))
    model = LanguageModel(data_directory)

    agent = await model.start()
    try:
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.get(f"{agent.runner_config['base_url']}/models")
    finally:
        await model.stop()

    assert answer.status_code == 200
    assert read_config(agent.runner_config).model == demo_agent.MODEL


def test_script_of_the_demo_can_be_played() -> None:
    kinds = [step.kind for step in read_script(demo_agent.scripted_agent().runner_config)]

    assert kinds[-2:] == ["message", "completed"]
    assert kinds.count("delta") > 5
