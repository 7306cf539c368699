"""The wheel that runner and plugin authors install, in an environment that holds nothing else."""

import asyncio
import email
import json
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from uv import find_uv_bin

from tests.runners.contexts import run_context

if TYPE_CHECKING:
    from temporalio.client import Client

    from tests.api.run_access import RunAccess

CHECKOUT = Path(__file__).resolve().parents[2]
OUTSIDE_RUNNER = Path(__file__).with_name("outside_runner.py")


@dataclass(frozen=True)
class Environment:
    """An environment of its own with the wheel and what it needs."""

    wheel: Path
    python: Path

    def run(self, *arguments: str, given: str = "") -> str:
        # Isolated: neither the checkout nor variables of the environment add to what can be imported.
        command = [str(self.python), "-I", *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def uv(*arguments: str) -> None:
    done = subprocess.run(
        [find_uv_bin(), "--quiet", *arguments], cwd=CHECKOUT, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "--wheel", "--out-dir", str(folder))
    (wheel,) = folder.glob("*.whl")
    uv("venv", "--python", sys.executable, str(folder / "env"))
    python = folder / "env" / "bin" / "python"
    uv("pip", "install", "--python", str(python), "--constraint", "requirements/dev.lock", str(wheel))
    return Environment(wheel, python)


@pytest.fixture
async def access(database_url: str, temporal_client: "Client") -> AsyncIterator["RunAccess"]:
    """An open attempt of a run in a conversation where something was said, on a host behind a real server."""
    # Here, so that the tests without a host start without its libraries.
    from tests.api.conftest import assemble, event, serve
    from tests.api.run_access import open_access

    async with AsyncExitStack() as stack:
        host = await serve(assemble(stack, database_url, temporal_client))
        await host.agent()
        await host.binding()
        for number in (1, 2):
            said = event(f"e{number}", input={"text": f"text {number}"})
            (await host.client.post("/v1/events", json=said)).raise_for_status()
        yield await open_access(host, conversation_id="c1")


def test_wheel_needs_pydantic_and_httpx_alone(environment: Environment) -> None:
    with zipfile.ZipFile(environment.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needed = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
        assert "runhost/py.typed" in archive.namelist()
        folders = {path.partition("/")[0] for path in archive.namelist()}

    assert [line for line in needed if "extra ==" not in line] == ["httpx>=0.28", "pydantic>=2.12"]
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == {"runhost"}


def test_everything_for_authors_can_be_imported(environment: Environment) -> None:
    script = "import runhost.protocol, runhost.sdk, runhost.sdk.http, runhost.client, sys; print(*sys.modules)"

    modules = environment.run("-c", script).split()

    assert {"pydantic", "httpx"} <= set(modules)
    # The host's own packages are not there, and neither is what they stand on.
    hosts = {"host_api", "providers", "activities", "workflows", "api", "stores", "runners", "migrations"}
    assert (hosts | {"fastapi", "sqlalchemy", "temporalio", "asyncpg", "structlog", "orjson", "yaml"}) & set(
        modules
    ) == set()


def test_runner_without_http_does_not_load_its_client(environment: Environment) -> None:
    """A program that speaks over pipes starts once per run, and httpx is most of what it would wait for."""
    assert environment.run("-c", "import runhost.sdk, sys; print('httpx' in sys.modules)") == "False\n"


async def test_runner_outside_reaches_a_live_host(environment: Environment, access: "RunAccess") -> None:
    """PROTOCOL 9: with nothing but the wheel, through the same checks as runners in process."""
    run_id, token = str(access.row.run_id), access.token
    authorization: Any = access.row.authorization
    fields = run_context().model_dump() | {"run_id": run_id, "resources": authorization["resources"]}
    fields["context"]["available_apis"] = authorization["available_apis"]
    address = f"http://127.0.0.1:{access.host.port}"

    output = await asyncio.to_thread(
        environment.run, str(OUTSIDE_RUNNER), address, token, "runhost/scripted", given=json.dumps(fields)
    )

    message, state, artifact, end = (json.loads(line) for line in output.splitlines())
    assert message["data"]["message"]["content"] == "2 said, first 'text 1', host 0.0.1"
    assert state["data"]["value"] == {"value": {"texts": ["text 1", "text 2"], "odd": "\0你"}, "keys": ["seen"]}
    assert artifact["data"]["content_base64"] == "VHJ1ZQ=="
    assert end["data"] == {"finish_reason": "unauthorized"}
