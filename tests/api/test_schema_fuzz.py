"""Whatever its document allows, the API answers as the document says: schemathesis calls a live host.

It runs as a process of its own, against a real server with real Postgres and Temporal; schemathesis.toml says how.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from host_api.audit import AccessAudit
from host_api.gate import HostApi
from host_api.limits import CallLimits
from tests.api.conftest import Host, assemble, serve
from tests.api.furnished import furnish
from tests.api.run_access import RunAccess, open_access
from tests.fixtures.fake_models import FakeModels

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


@dataclass
class Fuzzed:
    """A workspace behind a server, and a folder that says how to fuzz it."""

    host: Host
    access: RunAccess
    folder: Path

    async def run(self, *options: str, run_token: str) -> tuple[int | None, str]:
        """Return the exit status of schemathesis, and what it has to say."""
        environment = {
            "API_KEY": await self.host.key(),
            "RUN_ID": str(self.access.row.run_id),
            "RUN_TOKEN": run_token,
        }
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("schemathesis"),
            *(f"--config-file={CONFIGURATION.name}", "run", "--no-color", *options),
            f"http://127.0.0.1:{self.host.port}/openapi.json",
            cwd=self.folder,
            env=os.environ | environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, output.decode()


@pytest.fixture
async def fuzzed(
    database_url: str, temporal_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fuzzed]:
    async with AsyncExitStack() as stack:
        host = await serve(assemble(stack, database_url, temporal_client, models=FakeModels()))
        services = host.services.host_api.services
        # A fuzzer is a flood.
        audit = await stack.enter_async_context(AccessAudit(services.pool))
        unlimited = HostApi(services, audit, limits=CallLimits(calls_per_second=1e6, burst=10**6))
        monkeypatch.setitem(host.services.__dict__, "host_api", unlimited)
        things = await furnish(host)
        access = await open_access(
            host,
            resources={"tools": [{"tool_name": things["tool"], "operations": ["detail", "call"]}]},
            conversation_id="c1",
        )
        shutil.copy(CONFIGURATION, tmp_path)
        # The stream of a run that goes on does not end; this one has ended.
        (tmp_path / "runs.dict").write_text(f'"{things["run"]}"\n')
        yield Fuzzed(host, access, tmp_path)


@pytest.mark.timeout(300)
async def test_every_answer_is_one_that_the_document_describes(fuzzed: Fuzzed) -> None:
    """API.md: no 5xx, and no status, type, header or shape that is not described."""
    status, output = await fuzzed.run(run_token=fuzzed.access.token)
    assert status == 0, output


@pytest.mark.timeout(120)
async def test_refusals_of_a_wrong_run_token_are_described(fuzzed: Fuzzed) -> None:
    """PM-4."""
    options = "--include-path-regex=^/v1/host/", "--phases=fuzzing", "--mode=positive", "--max-examples=1"
    status, output = await fuzzed.run(*options, run_token="x" * 43)
    assert status == 0, output
