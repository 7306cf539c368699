"""The folder that one embedded stack owns: its data, logs and the proof that it is alone."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from runhost.embedded.errors import DataDirectoryInUse, EmbeddedError


class DataDirectory:
    """An exclusively owned folder.

    Ownership is an advisory lock of the kernel on ``lock``, which ends with the process that holds it,
    however that process ends; the process id inside is only there to name the owner. Layout::

        lock        held by the owner
        run/        one lock per child process, held by that child and its descendants
        logs/       one file per child process
        postgres/   Postgres cluster
        temporal.db Temporal's SQLite file

    Use it as a context manager, or call ``acquire`` and ``release``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self._lock: int | None = None

    @property
    def logs(self) -> Path:
        """Folder of the log files."""
        return self.path / "logs"

    @property
    def run(self) -> Path:
        """Folder of the children's locks."""
        return self.path / "run"

    def acquire(self) -> None:
        """Create the folder if need be and take it.

        Raises:
            DataDirectoryInUse: Another process owns it.
        EmbeddedError: It cannot be made or written.
        """
        try:
            for folder in (self.path, self.logs, self.run):
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            message = f"{str(self.path)!r} cannot hold data: {error.strerror}. Choose another --data-dir."
            raise EmbeddedError(message) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
            os.close(lock)
            raise DataDirectoryInUse(self.path, f"process {owner}" if owner else "another process") from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        self._lock = lock

    def release(self) -> None:
        """Give the folder back; a second call does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def is_owned(self) -> bool:
        """Whether this object holds the folder."""
        return self._lock is not None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
