"""Files of this machine, as documents to upload."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TYPES = {
    ".htm": "text/html",
    ".html": "text/html",
    ".json": "application/json",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".txt": "text/plain",
}


@dataclass(frozen=True)
class LocalDocument:
    """A file to upload.

    Attributes:
        document_id: Its path below the folder that was named, with slashes; of a single file, its name.
        mime_type: By the end of its name; None where that tells nothing.
    """

    path: Path
    document_id: str
    mime_type: str | None


def local_documents(path: Path) -> Iterator[LocalDocument]:
    """Yield a file, or the files below a folder in order of their paths.

    Hidden files and folders are left out, and symbolic links inside the folder: both lead to what nobody meant.
    """
    if not path.is_dir():
        yield _document(path, path.name)
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            found = Path(folder) / name
            if not name.startswith(".") and not found.is_symlink():
                yield _document(found, found.relative_to(path).as_posix())


def _document(path: Path, document_id: str) -> LocalDocument:
    return LocalDocument(path, document_id, TYPES.get(path.suffix.lower()))
