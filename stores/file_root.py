"""Files of the host that are artifacts: inside one folder, and looked at anew by every read (H-F3, RG-1).

Between registration and read anybody who may write there can put a link in a file's place. So a read walks down
from the folder and follows no link at any step, instead of asking first and opening then.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# A pipe would otherwise keep the caller until somebody writes to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileRefused(Exception):
    """A path is no file of the folder; ``reason`` names no path, so that it may be logged."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file as it was found.

    Attributes:
        key: Its place below the folder; no part of it is a link.
        sha256: Of its content, in hex.
    """

    key: str
    size_bytes: int
    sha256: str


class FileRoot:
    """The folder. All methods block on the disk: call them in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, path: Path) -> KeptFile:
        """Return what is known of a file; a path that is not absolute begins at the folder.

        Raises:
            FileRefused: It leads out of the folder, by `..` or a link, or to no regular file.
        """
        try:
            root = self._root.resolve(strict=True)
            real = (root / path).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            # Missing, not to be encoded, or a loop of links.
            raise FileRefused("missing") from None
        if not real.is_relative_to(root):
            raise FileRefused("outside")
        key = real.relative_to(root).as_posix()
        with os.fdopen(self._open(key), "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return KeptFile(key, file.tell(), digest.hexdigest())

    def read(self, key: str, *, offset: int, length: int, size_bytes: int | None) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end.

        Args:
            key: As `find` returned it.
            offset: First byte.
            length: Bytes wanted at most.
            size_bytes: What the file's size was when it was registered; one of another size is another file.

        Raises:
            FileRefused: It is no regular file inside of the folder any more, or has changed.
        """
        descriptor = self._open(key)
        try:
            size = os.fstat(descriptor).st_size
            if size != size_bytes:
                raise FileRefused("changed")
            return os.pread(descriptor, length, offset) if offset < size else b""
        finally:
            os.close(descriptor)

    def _open(self, key: str) -> int:
        path = PurePosixPath(key)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise FileRefused("outside")
        try:
            descriptor = self._walk(path)
        except (OSError, ValueError):
            raise FileRefused("missing or a link") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileRefused("no regular file")
        return descriptor

    def _walk(self, path: PurePosixPath) -> int:
        # The folder itself may be a link: it is the operator's choice.
        folder = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for part in path.parts[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(path.name, _FILE, dir_fd=folder)
        finally:
            os.close(folder)
