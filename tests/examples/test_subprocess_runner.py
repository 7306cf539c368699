"""The example runners in shell and for Node.js, discovered and executed by a real worker."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runners.discovery import discover
from runners.program import RunnerProgram
from runners.registry import RunnerRegistry
from runners.subprocess.session import ProgramSession
from runners.subprocess.transport import SubprocessTransport
from runners.transport import StopReason
from tests.fixtures.host import WorkingHost, make_envelope
from tests.runners.contexts import run_context
from tests.runners.programs import FakeHost, read_all

if TYPE_CHECKING:
    from runhost.protocol import AgentRun

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "subprocess_runner"
SHELL, NODE = "plugin:examples/visits/shell", "plugin:examples/visits/node"

RUNNERS = [
    pytest.param(SHELL, id="shell"),
    pytest.param(NODE, id="node", marks=pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")),
]


class StateHost(FakeHost):
    """A host with one value of state, or none at all."""

    def __init__(self, *, is_open: bool = True) -> None:
        super().__init__()
        self.value: Any = None
        self._is_open = is_open

    async def call(self, method: str, params: Any) -> Any:
        if not self._is_open:
            return await super().call("refuse", params)
        if method == "state_set":
            self.value = params["value"]
            return {}
        return {"value": self.value}


def start(runner_id: str, host: StateHost, text: str | None) -> ProgramSession:
    found = discover([FOLDER], packages=[])
    registry = RunnerRegistry(lambda: found)
    return SubprocessTransport(registry).open(registry.get(runner_id), run_context(text), host)


async def answer(runner_id: str, host: StateHost, text: str | None) -> str:
    session = start(runner_id, host, text)
    results = await read_all(session)
    assert await session.stop(StopReason.ENDED, 5) is None
    assert results[-1]["type"] == "run.completed"
    messages = [result["data"].get("chunk") or result["data"].get("message") for result in results[:-1]]
    return "".join(message["content"] for message in messages)


def test_examples_are_discovered() -> None:
    found = {runner.discovery.manifest.id: runner.execution for runner in discover([FOLDER], packages=[])}
    assert set(found) == {SHELL, NODE}
    assert all(isinstance(execution, RunnerProgram) for execution in found.values())


@pytest.mark.parametrize("runner_id", RUNNERS)
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("hi", "hi", id="plain"),
        pytest.param('"run_id":"x", \\ {}[]\n\t%s $HOME', '"run_id":"x", \\ {}[]\n\t%s $HOME', id="special-characters"),
        pytest.param("grüße 你好 🎈", "grüße 你好 🎈", id="other-scripts"),
        pytest.param(None, "nothing", id="no-text"),
    ],
)
async def test_text_comes_back_as_it_was_sent(runner_id: str, text: str | None, shown: str) -> None:
    host = StateHost()
    assert await answer(runner_id, host, text) == f"Hello, you said: {shown}. Message 1 of this conversation."
    assert host.value == 1


@pytest.mark.parametrize("runner_id", RUNNERS)
async def test_refused_call_fails_the_run_with_a_code(runner_id: str) -> None:
    session = start(runner_id, StateHost(is_open=False), "hi")
    (end,) = await read_all(session)
    assert (end["type"], end["data"]["code"]) == ("run.failed", "visits.no_state")
    assert "unauthorized" in end["data"]["error"]
    assert await session.stop(StopReason.ENDED, 5) is None


@pytest.mark.parametrize("runner_id", RUNNERS)
async def test_worker_runs_the_example_with_host_calls(working_host: WorkingHost, runner_id: str) -> None:
    """Two messages of one conversation: the second run finds in host state what the first one left."""
    async with working_host.worker(runner_paths=(FOLDER,)):
        for text in ("one", "two"):
            run = await _finish(working_host, runner_id, text)
            assert (run.status, run.status_reason) == ("completed", None)
    *_, last = await working_host.transcript()
    assert last.content == "Hey, you said: two. Message 2 of this conversation."


async def _finish(host: WorkingHost, runner_id: str, text: str) -> "AgentRun":
    from stores.ingest import Ingest

    await host.put_agent("a1", bind=False, runner_id=runner_id, runner_config={"greeting": "Hey"})
    async with host.engine.begin() as connection:
        accepted = await Ingest(connection, host.workspace_id).accept_run(make_envelope(input={"text": text}), "a1", {})
    assert accepted.new_run is not None
    await (await host.start(accepted.new_run)).result()
    return await host.run(accepted.new_run.run_id)
