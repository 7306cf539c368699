import importlib.util
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from runhost.embedded import (
    DataDirectory,
    EmbeddedError,
    EmbeddedExtraMissing,
    EmbeddedPostgres,
    PortInUse,
)
from tests.eventually import eventually
from tests.processes import is_alive


@pytest.fixture
async def postgres(data_directory: DataDirectory) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data_directory, durable=False)
    yield server
    await server.stop()


async def value(postgres: EmbeddedPostgres, statement: str) -> object:
    connection = await asyncpg.connect(postgres.url(driver="postgresql"))
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_start_serves_and_stop_leaves_no_process(postgres: EmbeddedPostgres) -> None:
    assert not await postgres.health()

    await postgres.start()
    pid = postgres.pid
    assert await postgres.health()
    assert await value(postgres, "SHOW max_connections") == "200"

    await postgres.stop()
    assert pid is not None
    assert not is_alive(pid)
    assert not await postgres.health()


async def test_restart_keeps_data_and_port(postgres: EmbeddedPostgres) -> None:
    await postgres.start()
    port = postgres.port
    await postgres.ensure_database("facts")
    await postgres.ensure_database("facts")
    await postgres.stop()

    await postgres.start()

    assert postgres.port == port
    assert await value(postgres, "SELECT count(*) FROM pg_database WHERE datname = 'facts'") == 1


async def test_killed_server_starts_again_with_committed_rows(postgres: EmbeddedPostgres) -> None:
    await postgres.start()
    await value(postgres, "CREATE TABLE fact AS SELECT 42 AS answer")

    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    assert await postgres.wait() == -signal.SIGKILL
    await postgres.start()

    assert await value(postgres, "SELECT answer FROM fact") == 42


async def test_server_ends_with_its_killed_owner_and_recovers(data_path: Path, start_owner) -> None:
    owner, server = await start_owner("postgres")
    owner.kill()
    await owner.wait()

    with DataDirectory(data_path) as directory:
        postgres = EmbeddedPostgres(directory, durable=False)
        await postgres.start()
        assert not is_alive(server["pid"])
        assert await postgres.health()
        await postgres.stop()


async def test_stale_pid_file_with_reused_pid_is_ignored(postgres: EmbeddedPostgres, data_path: Path) -> None:
    await postgres.start()
    pid_file = data_path / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    await postgres.wait()
    # As after a restart of a container: the number of the dead server now belongs to somebody else.
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")

    await postgres.start()

    assert await postgres.health()


async def test_busy_port_is_named(data_directory: DataDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        postgres = EmbeddedPostgres(data_directory, port=port, durable=False)
        with pytest.raises(PortInUse, match=f"Port {port} for postgres is already in use"):
            await postgres.start()
        assert postgres.pid is None


async def test_interrupted_first_start_begins_anew(postgres: EmbeddedPostgres, data_path: Path) -> None:
    (data_path / "postgres.new" / "base").mkdir(parents=True)

    await postgres.start()

    assert await postgres.health()
    assert not (data_path / "postgres.new").exists()


async def test_lost_password_says_what_to_do(postgres: EmbeddedPostgres, data_path: Path) -> None:
    await postgres.start()
    await postgres.stop()
    (data_path / "postgres.password").unlink()

    with pytest.raises(EmbeddedError, match=r"postgres\.password.* is missing"):
        await postgres.start()


async def test_start_needs_an_owned_directory(data_path: Path) -> None:
    directory = DataDirectory(data_path)
    with directory:
        postgres = EmbeddedPostgres(directory, durable=False)

    with pytest.raises(EmbeddedError, match="Acquire"):
        await postgres.start()


async def test_password_is_required_and_private(postgres: EmbeddedPostgres, data_path: Path) -> None:
    await postgres.start()

    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(f"postgresql://postgres:wrong@127.0.0.1:{postgres.port}/postgres")
    assert (data_path / "postgres.password").stat().st_mode & 0o077 == 0


async def test_log_quotes_neither_rows_nor_statements(postgres: EmbeddedPostgres, data_path: Path) -> None:
    await postgres.start()
    await value(postgres, "CREATE TABLE word (text text PRIMARY KEY)")
    await value(postgres, "INSERT INTO word VALUES ('canary')")

    with pytest.raises(asyncpg.UniqueViolationError):
        await value(postgres, "INSERT INTO word VALUES ('canary')")
    log = data_path / "logs" / "postgres.log"
    await eventually(lambda: "duplicate key" in log.read_text())

    assert "canary" not in log.read_text()


async def test_trigrams_of_chinese_text_exist(postgres: EmbeddedPostgres) -> None:
    await postgres.start()
    await value(postgres, "CREATE EXTENSION pg_trgm")

    assert await value(postgres, "SELECT cardinality(show_trgm('讨论天气'))") == 5


async def test_missing_wheel_names_the_extra(data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(EmbeddedExtraMissing, match=r"runhost\[embedded\]"):
        EmbeddedPostgres(data_directory)


async def test_broken_data_is_told_with_the_log(postgres: EmbeddedPostgres, data_path: Path) -> None:
    await postgres.start()
    await postgres.stop()
    shutil.rmtree(data_path / "postgres" / "global")

    with pytest.raises(EmbeddedError, match=r"postgres did not start: .*(?s:.)*could not open file"):
        await postgres.start()
