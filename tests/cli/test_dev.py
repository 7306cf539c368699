import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from runhost.cli.dev_stack import DevOptions, running_stack
from runhost.cli.supervisor import Supervisor
from runhost.embedded import DataDirectory, PortInUse
from tests.eventually import eventually
from tests.processes import is_alive

# A stack is ready in 3 s, and on a machine busy with other things in 20.
pytestmark = pytest.mark.timeout(180)

Stack = tuple[asyncio.subprocess.Process, dict[str, Any]]
Start = Callable[[], Awaitable[Stack]]


def children(process: asyncio.subprocess.Process) -> dict[str, int]:
    """Find the parts of a stack: name to process id."""
    names = {"bin/postgres": "postgres", "bin/temporal": "temporal", "tests.cli.stack": "api", "sleep(600)": "worker"}
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    found: dict[str, int] = {}
    for line in listed.stdout.splitlines():
        pid, _, arguments = line.strip().partition(" ")
        found |= {name: int(pid) for mark, name in names.items() if mark in arguments}
    return found


@pytest.fixture
async def start(data_path: Path) -> AsyncIterator[Start]:
    started: list[asyncio.subprocess.Process] = []

    async def start_stack() -> Stack:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.cli.stack", str(data_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        return process, json.loads(await process.stdout.readline())

    yield start_stack
    for process in started:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def answers(stack: dict[str, Any]) -> bool:
    try:
        async with httpx.AsyncClient() as http:
            statuses = [(await http.get(url)).status_code for url in (f"{stack['api']}/healthz", stack["ui"])]
        connection = await asyncpg.connect(stack["postgres"])
        await connection.close()
    except (httpx.TransportError, OSError, asyncpg.PostgresError):
        return False
    return statuses == [200, 200]


async def test_killed_parts_come_back_and_ctrl_c_stops_all(start: Start, data_path: Path) -> None:
    process, stack = await start()
    before = children(process)
    assert set(before) == {"postgres", "temporal", "worker", "api"}
    assert stack["data_dir"] == str(data_path)
    assert (data_path / "key").stat().st_mode & 0o077 == 0
    assert await answers(stack)

    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    await eventually(
        lambda: (now := children(process)).keys() == before.keys() and not now.items() & before.items(), 20
    )
    await eventually(lambda: answers(stack), 20)

    after = children(process)
    process.send_signal(signal.SIGINT)
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert output == b"", "one line of JSON and nothing else"
    assert not any(map(is_alive, after.values()))


async def test_start_after_kill_of_everything_keeps_data(start: Start) -> None:
    process, stack = await start()
    parts = children(process)
    connection = await asyncpg.connect(stack["postgres"])
    await connection.execute("CREATE TABLE fact AS SELECT 42 AS answer")
    await connection.close()

    process.kill()
    await process.wait()
    process, again = await start()

    assert not any(map(is_alive, parts.values()))
    assert again["key"] == stack["key"]
    connection = await asyncpg.connect(again["postgres"])
    assert await connection.fetchval("SELECT answer FROM fact") == 42
    assert await connection.fetchval("SELECT array_agg(name) FROM api_key") == ["dev"]
    await connection.close()


async def test_second_signal_stops_at_once(start: Start) -> None:
    process, _ = await start()
    parts = children(process)
    # A worker that does not react, as one with a long grace period.
    os.kill(parts["worker"], signal.SIGSTOP)

    process.terminate()
    await eventually(lambda: not is_alive(parts["api"]))
    process.terminate()
    await process.communicate()

    assert process.returncode == 0
    assert not any(map(is_alive, parts.values()))


async def run_cli(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runhost.cli", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


async def test_second_instance_is_refused_by_name(data_directory: DataDirectory) -> None:
    code, output, errors = await run_cli("dev", "--data-dir", str(data_directory.path))

    assert (code, output) == (2, "")
    assert f"in use by process {os.getpid()}" in errors.replace("\n", " ")


@pytest.mark.parametrize("option", ["api_port", "ui_port", "temporal_port", "postgres_port"])
async def test_busy_port_is_told_before_anything_starts(data_path: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = DevOptions(data_path, **{option: port})
        with pytest.raises(PortInUse, match=f"Port {port} for"):
            async with running_stack(options, Supervisor(lambda _news: None)):
                pytest.fail("it started")

    assert not (data_path / "postgres").exists()
