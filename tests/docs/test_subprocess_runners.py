"""docs/subprocess-runners.md: its program runs as it stands, with a host and without."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from runners.manifest import load_manifest
from runners.program import RunnerProgram
from runners.subprocess.calls import MAX_CALL_ID, MAX_RUNNING, MAX_WAITING
from runners.subprocess.environment import NETWORK, USUAL
from runners.subprocess.session import ProgramLimits
from runners.transport import StopReason
from tests.runners.programs import FakeHost, read_all, start_program

PAGE = Path(__file__).resolve().parents[2].joinpath("docs", "subprocess-runners.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def write_parrot(folder: Path) -> RunnerProgram:
    (folder / "runner.yaml").write_text(block("yaml"))
    (folder / "parrot.py").write_text(block("python"))
    program = load_manifest(folder / "runner.yaml").execution
    assert isinstance(program, RunnerProgram)
    return program


class CountingHost(FakeHost):
    async def call(self, method: str, params: Any) -> Any:
        self.calls.append((method, params))
        return {"value": 41} if method == "state_get" else {}


async def test_program_of_the_page_is_a_runner(tmp_path: Path) -> None:
    host = CountingHost()
    session = start_program(write_parrot(tmp_path), host)
    message, end = await read_all(session)
    assert await session.stop(StopReason.ENDED, 5) is None
    assert message["data"]["message"]["content"] == "You said: hello (42)"
    assert end["type"] == "run.completed"
    assert host.calls[1] == ("state_set", {"scope": "conversation", "key": "parrot.count", "value": 42})


def test_program_of_the_page_can_be_tried_by_hand(tmp_path: Path) -> None:
    write_parrot(tmp_path)
    shell = subprocess.run(
        ["sh", "-c", f"{block('sh')}wait"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30
    )
    lines = [json.loads(line) for line in shell.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["call", "call", "result", "result"]
    assert lines[2]["result"]["data"]["message"]["content"] == "You said: hi (2)"


def test_page_names_the_limits_of_the_code() -> None:
    text, limits = " ".join(PAGE.split()), ProgramLimits()
    assert f"at most {limits.line_bytes // 1024**2} MiB long" in text
    assert f"the last {limits.kept_error_bytes // 1024} KiB" in text
    assert f"goes on for {limits.linger_seconds:g} s" in text
    assert f"{MAX_RUNNING} calls of a program" in text
    assert f"above {MAX_WAITING:,} the host" in text
    assert MAX_CALL_ID == 2**53
    assert all(f"`{name}`" in text for name in USUAL)
    assert all(f"`{name}`" in text for name in NETWORK if "PROXY" not in name.upper())
    assert all(f"`{reason.value}`" in text for reason in StopReason if reason is not StopReason.ENDED)
