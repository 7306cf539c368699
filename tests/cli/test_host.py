import socket
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.client.stub import RUN_ID, HostStub, answer, problem, run

CLIENT_COMMANDS = [
    ("events", "send", "hello"),
    ("runs", "list"),
    ("runs", "show", RUN_ID),
    ("runs", "follow", RUN_ID),
    ("runs", "cancel", RUN_ID),
    ("runners",),
    ("agents", "put", "a1", "--runner", "plugin:a/b/c"),
    ("agents", "list"),
    ("agents", "show", "a1"),
    ("bindings", "put", "b1", "--agent", "a1"),
    ("bindings", "list"),
]
SERVER_LIBRARIES = ("sqlalchemy", "asyncpg", "temporalio", "fastapi", "alembic", "structlog", "orjson", "stores", "api")


@pytest.mark.parametrize("command", CLIENT_COMMANDS, ids=" ".join)
async def test_refusal_is_told_and_ends_with_1(cli: Cli, host_stub: HostStub, command: tuple[str, ...]) -> None:
    host_stub.play(problem(403, "unauthorized"))

    outcome = await cli(*command)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr == "Error: unauthorized (403): because of unauthorized\n"


async def test_host_that_is_not_there_is_told_and_ends_with_3(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    outcome = await cli("runs", "list", "--api", url)

    assert (outcome.code, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith(f"Error: No answer from {url}")
    assert "`runhost dev` starts one" in outcome.stderr


async def test_other_server_is_told_and_ends_with_1(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, {"hello": "world"}))

    outcome = await cli("runs", "list")

    assert outcome.code == 1
    assert "Is this the address of a runhost API" in outcome.stderr


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"RUNHOST_KEY": None}, "No key. Set RUNHOST_KEY"),
        ({"RUNHOST_KEY": "two words"}, "the key is empty or holds"),
        ({"RUNHOST_API_URL": "localhost:8080"}, "is no address of an API"),
    ],
    ids=["no key", "odd key", "odd address"],
)
async def test_wrong_setting_is_told_and_ends_with_2(cli: Cli, more: dict[str, Any], told: str) -> None:
    outcome = await cli("runs", "list", **more)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert told in outcome.stderr
    assert "two words" not in outcome.stderr


async def test_options_come_before_the_environment(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, run()))

    await cli("runs", "cancel", RUN_ID, "--api", host_stub.url, "--key", "rh_other", RUNHOST_API_URL="http://nowhere")

    assert host_stub.requests[0].headers["authorization"] == "Bearer rh_other"


@pytest.mark.parametrize("command", [*CLIENT_COMMANDS, ("keys", "create"), ("demo",)], ids=" ".join)
async def test_help_teaches_exit_codes(cli: Cli, command: tuple[str, ...]) -> None:
    name = [word for word in command[:2] if word.isalpha() and word != "hello"]

    outcome = await cli(*name, "--help")

    assert outcome.code == 0
    assert "Exit codes: 0" in outcome.stdout


def test_client_commands_need_no_server_libraries() -> None:
    code = "import sys, runhost.cli, runhost.cli.live_run, runhost.cli.documents; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "runhost.client" in loaded
    assert not {name.partition(".")[0] for name in loaded} & set(SERVER_LIBRARIES)
