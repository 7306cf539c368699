"""The scripts of the containers, run against real servers."""

import asyncio
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import asyncpg
import pytest
from pydantic import SecretStr

from deploy.check_api import is_ready
from deploy.check_worker import has_spoken
from runhost.cli.connections import engine_for
from runhost.embedded import DataDirectory, EmbeddedPostgres
from runhost.embedded.postgres import programs
from runhost.embedded.temporal import program
from runhost.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[2]


async def run(script: str, **environment: str) -> str:
    """Run a script of ours; returns what it says."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        str(CHECKOUT / "deploy" / script),
        env=environment | {"PATH": f"{environment.get('PATH', '')}:{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_databases_belong_to_roles_that_do_not_see_each_other(data_directory: DataDirectory) -> None:
    server = EmbeddedPostgres(data_directory, durable=False)
    await server.start()
    try:
        superuser = server.url(driver="postgresql")
        password = superuser.split(":")[2].split("@")[0]
        await run(
            "postgres/create-databases.sh",
            PATH=str(programs()),
            PGHOST="127.0.0.1",
            PGPORT=str(server.port),
            PGPASSWORD=password,
            DATABASE_PASSWORD="it's facts",
            TEMPORAL_PASSWORD="temporal",
        )
        facts = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="runhost", password="it's facts", database="runhost"
        )
        await facts.execute("CREATE EXTENSION pg_trgm; CREATE TABLE fact (n int)")
        await facts.close()
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asyncpg.connect(
                host="127.0.0.1", port=server.port, user="temporal", password="temporal", database="runhost"
            )
    finally:
        await server.stop()


async def test_namespace_is_made_once_and_keeps_histories(temporal_address: str, task_queue: str) -> None:
    namespace = f"ns-{task_queue}"
    environment = {
        "PATH": str(program().parent),
        "TEMPORAL_ADDRESS": temporal_address,
        "TEMPORAL_NAMESPACE": namespace,
        "HOME": "/",
    }
    await run("temporal/ensure-namespace.sh", **environment)
    await run("temporal/ensure-namespace.sh", **environment)

    process = await asyncio.create_subprocess_exec(
        program(),
        *("operator", "namespace", "describe", "--namespace", namespace, "--output", "json"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    kept = json.loads(output)["config"]["workflowExecutionRetentionTtl"]
    assert kept == f"{90 * 86_400}s"


async def test_worker_is_healthy_once_it_has_used_its_connections(database_url: str) -> None:
    assert not await has_spoken(database_url)

    engine = engine_for(Settings(database_url=SecretStr(database_url)), "worker")
    async with engine.connect() as connection:
        await connection.exec_driver_sql("SELECT 1")

    assert await has_spoken(database_url)
    assert not await has_spoken(database_url, within_seconds=0)

    await engine.dispose()
    assert not await has_spoken(database_url)


async def test_worker_is_unhealthy_without_its_database(database_url: str) -> None:
    assert not await has_spoken(database_url.rpartition("/")[0] + "/missing")


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
async def test_api_is_healthy_when_it_says_that_it_is_ready(status: int, *, healthy: bool) -> None:
    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Api) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        assert await asyncio.to_thread(is_ready, server.server_port) is healthy
        thread.join()
    assert not is_ready(server.server_port)
