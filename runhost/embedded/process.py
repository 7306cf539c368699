"""One child process with a log file, an end that is sure to come, and no leftovers."""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from runhost.embedded import launcher
from runhost.embedded.data_directory import DataDirectory
from runhost.embedded.errors import EmbeddedError, StartFailed

# A leftover of a killed owner was told to stop when its owner died; Postgres may take this long.
LEFTOVER_GRACE_SECONDS = 20.0
KILL_GRACE_SECONDS = 5.0
LOG_ROTATE_BYTES = 10 * 1024 * 1024
LOG_TAIL_BYTES = 4096
LOG_TAIL_LINES = 15
POLL_SECONDS = 0.02

StopStep = tuple[signal.Signals, float]


class ChildProcess:
    """A named child of this process inside a data directory.

    The child and its descendants hold a lock of their own (``run/<name>.lock``), which the kernel frees
    with the last of them. So after ``kill -9`` of anything, the next start can tell whether something
    is left, wait for it, and in the end kill it, without trusting process ids that may have been reused.

    It must be started from the main thread: Linux ties the child's life to the thread that made it.

    Args:
        name: One word, names lock and log file.
        directory: Owned data directory.
        stop_steps: Signals for an orderly stop, each with the seconds to wait; SIGKILL comes after them.
        death_signal: What the kernel sends to the child when this process dies.
        user: Account to run as, None for our own.
    """

    def __init__(
        self,
        name: str,
        directory: DataDirectory,
        *,
        stop_steps: Sequence[StopStep] = ((signal.SIGTERM, 10.0),),
        death_signal: signal.Signals = signal.SIGKILL,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.log_path = directory.logs / f"{name}.log"
        self._directory = directory
        self._lock_path = directory.run / f"{name}.lock"
        self._stop_steps = stop_steps
        self._death_signal = death_signal
        self._user = user
        self._process: asyncio.subprocess.Process | None = None
        self._log_start_bytes = 0

    @property
    def pid(self) -> int | None:
        """Process id of the running child, None when there is none."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the child was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> None:
        """Start the child, once whatever an earlier one left behind is gone.

        Args:
            command: Absolute path of the program, and its arguments.
            environment: The whole environment of the child, None for a copy of ours.

        Raises:
            EmbeddedError: The directory is not owned, or a leftover does not end.
        """
        if not self._directory.is_owned:
            message = f"Acquire {str(self._directory.path)!r} before starting {self.name} in it."
            raise EmbeddedError(message)
        if self.is_running:
            message = f"{self.name} is already running as process {self.pid}."
            raise EmbeddedError(message)
        lock = await self._take_lock(LEFTOVER_GRACE_SECONDS)
        try:
            self._process = await self._spawn(command, environment, lock)
        finally:
            # The child has its own copy; from now on the lock is free exactly when the child is gone.
            os.close(lock)

    async def _spawn(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None, lock: int
    ) -> asyncio.subprocess.Process:
        launch = [sys.executable, "-I", "-S", launcher.__file__]
        launch += [str(os.getpid()), str(int(self._death_signal)), self._user or "-"]
        log = self._open_log()
        try:
            return await asyncio.create_subprocess_exec(
                *launch,
                *(str(part) for part in command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=(lock,),
                # Ctrl-C at the terminal must reach the owner only, which stops its children in order.
                start_new_session=True,
            )
        finally:
            os.close(log)

    def _open_log(self) -> int:
        if self.log_path.exists() and self.log_path.stat().st_size > LOG_ROTATE_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        log = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._log_start_bytes = os.fstat(log).st_size
        return log

    def log_tail(self) -> str:
        """Return the last lines that the latest start wrote, at most 15 of them."""
        with self.log_path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start_bytes, end - LOG_TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def failed(self, reason: str) -> StartFailed:
        """Build the error that says why the start failed and what the child wrote."""
        return StartFailed(self.name, reason, self.log_path, self.log_tail())

    async def wait(self) -> int:
        """Wait for the end of the running child; returns its exit code, negative for a signal."""
        if self._process is None:
            message = f"{self.name} was not started."
            raise EmbeddedError(message)
        return await self._process.wait()

    async def clear(self) -> None:
        """Wait until nothing of an earlier child is left, killing it when it takes too long.

        Raises:
            EmbeddedError: It cannot be killed.
        """
        os.close(await self._take_lock(LEFTOVER_GRACE_SECONDS))

    async def stop(self) -> None:
        """Stop the child and everything it started; a second call does nothing."""
        if self._process is None:
            return
        for stop_signal, seconds in (*self._stop_steps, (signal.SIGKILL, KILL_GRACE_SECONDS)):
            if not self.is_running:
                break
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(stop_signal)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), seconds)
        self._process = None
        # Descendants that outlive the child for a moment still hold the lock.
        os.close(await self._take_lock(KILL_GRACE_SECONDS))

    def kill(self) -> None:
        """End the child at once, without what it started; ``stop`` cleans up after it."""
        if self._process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _take_lock(self, grace_seconds: float) -> int:
        """Lock the child's file, waiting for an earlier child's remains and then killing them."""
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if await _lock_within(lock, grace_seconds):
                return lock
            remains = _holders(self._lock_path)
            for pid in remains:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if await _lock_within(lock, KILL_GRACE_SECONDS):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        shown = ", ".join(map(str, remains)) or "unknown"
        message = f"An earlier {self.name} does not end (process {shown}). Kill it, then start again."
        raise EmbeddedError(message)


async def _lock_within(lock: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        else:
            return True


def _holders(lock_path: Path) -> list[int]:
    """Find the processes, other than this one, that have the lock file open (Linux; elsewhere none)."""
    wanted = lock_path.stat()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        if pid != os.getpid() and _has_open(process / "fd", wanted):
            found.append(pid)
    return found


def _has_open(descriptors: Path, wanted: os.stat_result) -> bool:
    # Processes and descriptors come and go while we look, and other users' are closed to us.
    with contextlib.suppress(OSError):
        for descriptor in descriptors.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(descriptor.stat(), wanted):
                    return True
    return False
