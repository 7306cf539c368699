"""The commands against the real API, and as real processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
import structlog

from tests.cli.conftest import Cli, Outcome, run_cli
from tests.client.stub import KEY, RUN_ID, HostStub, answer, event, run
from tests.fixtures.host import SCRIPTED
from tests.fixtures.live_host import LiveHost
from tests.fixtures.openai_stub import Reply, StubRequest


@pytest.fixture
def live_cli(live_host: LiveHost) -> Iterator[Cli]:
    # The host logs from this process too, and not into what the commands write.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))
    env = {"RUNHOST_API_URL": live_host.url, "RUNHOST_KEY": live_host.key}

    async def run(*arguments: str, stdin: str | None = None) -> Outcome:
        return await run_cli(*arguments, env=env, stdin=stdin)

    yield run
    structlog.reset_defaults()


async def start(url: str, *arguments: str, key: str = KEY) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "runhost.cli", *arguments),
        env={**os.environ, "RUNHOST_API_URL": url, "RUNHOST_KEY": key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def test_agent_is_made_bound_talked_to_and_looked_at(live_cli: Cli) -> None:
    name = f"cli-{uuid.uuid4().hex}"
    script = json.dumps({"script": [{"delta": "durable "}, {"delta": "✓"}, {"completed": "stop"}]})

    assert (await live_cli("agents", "put", name, "--runner", SCRIPTED, "--config", script)).code == 0
    assert (await live_cli("bindings", "put", name, "--agent", name, "--bot", name)).code == 0
    sent = await live_cli("events", "send", "hello", "--bot", name, "--conversation", name, "--follow")
    [listed] = (await live_cli("runs", "list", "--agent", name, "--json")).documents
    [shown] = (await live_cli("runs", "show", listed["run_id"], "--json")).documents
    table = await live_cli("runs", "show", listed["run_id"])
    again = await live_cli("runs", "follow", listed["run_id"], "--after", "2")
    cancelled = await live_cli("runs", "cancel", listed["run_id"])

    assert (sent.code, sent.stdout) == (0, "durable ✓\n")
    assert [row["sequence"] for row in shown["events"]] == list(range(1, listed["last_sequence"] + 1))
    assert shown["attempts"][0]["outcome"] == "completed"
    assert '"durable "' in table.stdout
    assert (again.code, again.stdout) == (0, "✓\n")
    assert (cancelled.code, "run_terminal (409)" in cancelled.stderr) == (1, True)
    assert SCRIPTED in (await live_cli("runners")).stdout


async def test_process_follows_a_run_that_fails(live_host: LiveHost, live_cli: Cli) -> None:
    name = f"cli-{uuid.uuid4().hex}"
    script = json.dumps({"script": [{"delta": "half"}, {"failed": {"code": "model.gone", "error": "no answer"}}]})
    await live_cli("agents", "put", name, "--runner", SCRIPTED, "--config", script)
    await live_cli("bindings", "put", name, "--agent", name, "--bot", name)

    process = await start(live_host.url, "events", "send", "hi", "--bot", name, "--follow", key=live_host.key)
    stdout, stderr = await process.communicate()

    assert process.returncode == 1
    assert stdout == b"half\n"
    assert b"model.gone: no answer" in stderr
    assert b"Traceback" not in stderr


async def silent(_request: StubRequest, reply: Reply) -> None:
    await reply.start_stream()
    await reply.send_event(event(1, data={"chunk": {"content": "still here"}}))
    await reply.until_disconnected()


@pytest.mark.parametrize("command", ["follow", "show"])
async def test_ctrl_c_is_quiet_and_ends_with_130(host_stub: HostStub, command: str) -> None:
    asked = asyncio.Event()

    async def wait(request: StubRequest, reply: Reply) -> None:
        asked.set()
        await (silent(request, reply) if command == "follow" else reply.until_disconnected())

    host_stub.play(wait)
    process = await start(host_stub.url, "runs", command, RUN_ID)
    await asked.wait()
    if command == "follow":
        assert process.stdout is not None
        assert await process.stdout.readexactly(10) == b"still here"

    process.send_signal(signal.SIGINT)
    stdout, stderr = await process.communicate()

    assert process.returncode == 130
    assert stdout.strip() == b""
    assert stderr == b""


async def test_reader_of_the_output_that_leaves_is_no_error(host_stub: HostStub) -> None:
    page = {"items": [run(metadata={"x": "y" * 1_000})] * 200, "next_cursor": "more", "has_more": True}
    host_stub.play(answer(200, page))
    process = await start(host_stub.url, "runs", "list", "--limit", "2000", "--json")
    assert process.stdout is not None
    assert process.stderr is not None

    assert json.loads(await process.stdout.readline())["run_id"] == RUN_ID
    # As `head -1` does.
    process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    stderr = await process.stderr.read()

    assert await process.wait() == 1
    assert stderr == b""
