"""Programs that play runners, and a host that answers them."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from runhost.protocol import AgentAPIError, AgentAPIException, AgentRunnerManifest, JsonObject
from runners.program import RunnerProgram
from runners.subprocess.session import ProgramLimits, ProgramRun, ProgramSession
from runners.transport import StopReason
from tests.runners.contexts import run_context

RUNNER_ID = "plugin:test/programs/default"

PREAMBLE = """
import json, os, signal, subprocess, sys, time

def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def write(**message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()

def result(type_, **data):
    write(type="result", result={"run_id": run["run_id"], "type": type_, "data": data})

def call(id_, method, **params):
    write(type="call", id=id_, method=method, params=params)

run = read()
"""


class FakeHost:
    """Answers with what it was asked; methods that wait, refuse, break or stream by their names."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self.running = 0
        self.most_running = 0
        self.cancelled: list[str] = []
        self.release = asyncio.Event()

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        self.calls.append((method, params))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if method == "wait":
                await self.release.wait()
            if method == "refuse":
                raise AgentAPIException(
                    AgentAPIError(code="unauthorized", message="not granted", details={"resource": "m1"})
                )
            if method == "break":
                raise KeyError(method)
        except asyncio.CancelledError:
            self.cancelled.append(method)
            raise
        finally:
            self.running -= 1
        return {"method": method, **params}

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        self.calls.append((method, params))
        try:
            for number in range(3):
                yield {"number": number}
            if params.get("refuse"):
                raise AgentAPIException(AgentAPIError(code="runtime_error", message="broke off", retryable=True))
            if params.get("wait"):
                await self.release.wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.append(method)
            raise


def program_of(folder: Path, code: str) -> RunnerProgram:
    """A Python program without our package: the preamble, then `code`."""
    (folder / "program.py").write_text(PREAMBLE + code)
    return RunnerProgram(folder, (sys.executable, "-I", "-S", "program.py"))


def start_program(
    program: RunnerProgram,
    host: FakeHost | None = None,
    *,
    config: JsonObject | None = None,
    text: str | None = "hello",
    **limits: Any,
) -> ProgramSession:
    manifest = AgentRunnerManifest(id=RUNNER_ID, name="default", label={"en_US": "Program"})
    run = ProgramRun(RUNNER_ID, manifest, program, run_context(text, config))
    return ProgramSession(run, host or FakeHost(), ProgramLimits(**limits))


def start_shell(folder: Path, script: str, **options: Any) -> ProgramSession:
    return start_program(RunnerProgram(folder, ("sh", "-c", script)), **options)


async def read_all(session: ProgramSession) -> list[Any]:
    return [result async for result in session.results()]


async def play(folder: Path, code: str, host: FakeHost | None = None, **options: Any) -> list[Any]:
    """Run a program to its end and return the data of its results."""
    session = start_program(program_of(folder, code), host, **options)
    results = await read_all(session)
    assert await session.stop(StopReason.ENDED, 5) is None
    return [result["data"] for result in results]
