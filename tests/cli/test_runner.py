"""`runhost runner verify`, as a process of its own: it sets up logging, which other tests must not inherit."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import FOREIGN_SETTINGS, Outcome, run_cli
from tests.eventually import eventually
from tests.runners.manifests import write_named, write_runner

SCRIPTED = "plugin:runhost/scripted/default"
OPENAI_CHAT = "plugin:runhost/openai-chat/default"

SILENT = """
from runhost.sdk import AgentRunner, results


class Echo(AgentRunner):
    async def run(self, ctx):
        yield results.completed(ctx)
"""

GREETER = """
from runhost.sdk import AgentRunner, results


class Echo(AgentRunner):
    async def run(self, ctx):
        yield results.completed(ctx, message=self.config_of(ctx)["greeting"])
"""

SLEEPER = """
import asyncio
from pathlib import Path
from runhost.sdk import AgentRunner, results

HERE = Path(__file__).parent


class Echo(AgentRunner):
    async def run(self, ctx):
        (HERE / "started").touch()
        try:
            await asyncio.sleep(3600)
        finally:
            (HERE / "stopped").touch()
        yield results.completed(ctx)
"""


async def start(*arguments: str, **env: str) -> asyncio.subprocess.Process:
    clean = {name: value for name, value in os.environ.items() if name not in FOREIGN_SETTINGS}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "runhost.cli", "runner", "verify", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=clean | {"NO_COLOR": "1", "COLUMNS": "200", **env},
    )


async def outcome_of(process: asyncio.subprocess.Process) -> Outcome:
    stdout, stderr = await process.communicate()
    assert process.returncode is not None
    return Outcome(process.returncode, stdout.decode(), stderr.decode())


async def verify(*arguments: str, **env: str) -> Outcome:
    return await outcome_of(await start(*arguments, **env))


async def test_cases_are_listed() -> None:
    outcome = await run_cli("runner", "verify", "--list", "--case", "cancel", "--case", "answer", env={})
    assert outcome.code == 0
    _, *lines = outcome.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["answer", "cancel"]


async def test_shipped_runner_passes_and_the_table_says_so(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    outcome = await verify(SCRIPTED, "--case", "answer", "--case", "usage", "--json", str(file))
    assert outcome.code == 0, outcome.stderr
    title, _, answer, usage, counts = (line.split() for line in outcome.stdout.splitlines())
    assert (title, answer[:2], usage[:2]) == ([SCRIPTED], ["answer", "passed"], ["usage", "n/a"])
    assert counts[:6] == ["1", "passed,", "0", "failed,", "1", "n/a,"]
    report = json.loads(file.read_text())
    assert (report["runner_id"], report["is_passed"]) == (SCRIPTED, True)
    assert outcome.stderr == ""


async def test_model_endpoint_makes_a_chat_runner_work() -> None:
    outcome = await verify(OPENAI_CHAT, "--model-endpoint", "--case", "answer", "--json", "-")
    assert outcome.code == 0, outcome.stderr
    (report,) = outcome.documents
    assert report["cases"][0]["outcome"] == "passed"
    assert report["scenarios"][0]["calls"] == 1
    assert "answer" in outcome.stderr


async def test_failing_runner_says_what_was_seen_and_what_to_do(tmp_path: Path) -> None:
    write_runner(tmp_path, code=SILENT)
    outcome = await verify(str(tmp_path), "--case", "silence")
    assert outcome.code == 1
    assert "run.completed without anything to show" in outcome.stdout
    assert "→ Say so in a message, or end with results.failed." in outcome.stdout
    assert "0 passed, 1 failed, 0 n/a" in outcome.stdout


@pytest.mark.parametrize("text", ["greeting: Good day\n", '{"greeting": "Good day"}'], ids=["YAML", "JSON"])
async def test_configuration_reaches_the_runner(tmp_path: Path, text: str) -> None:
    manifest = write_runner(tmp_path, code=GREETER)
    config = tmp_path / "config.yaml"
    config.write_text(text)
    outcome = await verify(str(manifest), "--config", str(config), "--case", "answer")
    assert outcome.code == 0, outcome.stdout


async def test_runner_is_found_by_its_id_in_the_folders_of_the_settings(tmp_path: Path) -> None:
    write_named(tmp_path, "blank")
    outcome = await verify("plugin:acme/blank/default", "--case", "order", RUNHOST_RUNNER_PATHS=str(tmp_path))
    assert outcome.code == 0, outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say which runner"),
        ((SCRIPTED, "--case", "cancle"), "there is no case 'cancle'; there are: answer,"),
        ((SCRIPTED, "--timeout", "0"), "--timeout"),
    ],
    ids=["no runner", "unknown case", "no time"],
)
async def test_wrong_usage_says_what_to_do(arguments: tuple[str, ...], told: str) -> None:
    outcome = await run_cli("runner", "verify", *arguments, env={})
    assert outcome.code == 2
    assert told in outcome.stderr


async def test_model_endpoint_needs_a_runner_that_takes_one() -> None:
    outcome = await verify(SCRIPTED, "--model-endpoint")
    assert outcome.code == 2
    assert "has no 'base_url' and 'model'" in outcome.stderr


async def test_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    outcome = await verify(SCRIPTED, "--case", "answer", "--json", str(tmp_path))
    assert outcome.code == 2
    assert "cannot be written: Is a directory" in outcome.stderr


async def test_interrupt_stops_the_runner_too(tmp_path: Path) -> None:
    write_runner(tmp_path, code=SLEEPER)
    process = await start(str(tmp_path))
    await eventually((tmp_path / "started").exists, within_seconds=30)
    process.send_signal(signal.SIGINT)
    outcome = await outcome_of(process)
    assert outcome.code == 130
    assert "Stopped; the runner was stopped too." in outcome.stderr
    assert (tmp_path / "stopped").exists()
