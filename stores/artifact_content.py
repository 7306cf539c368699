"""Where the bytes of an artifact are, and how a part of them is read (HOST 11)."""

import asyncio

import structlog

from stores.errors import ArtifactNotFound
from stores.file_root import FileRefused, FileRoot

BLOB = "blob"
FILE = "file"
URL = "url"
PLATFORM_REF = "platform_ref"

_log = structlog.get_logger(__name__)


async def read_file(
    files: FileRoot | None, artifact_id: str, key: str | None, *, offset: int, length: int, size_bytes: int | None
) -> bytes:
    """Return a part of a file artifact, after looking at the file anew (H-F3).

    Raises:
        ArtifactNotFound: The file is not what was registered any more, or this process has no folder of files. The
            log says which, without the path (H-F4).
    """
    if files is None or key is None:
        reason = "no folder of files here"
    else:
        try:
            return await asyncio.to_thread(files.read, key, offset=offset, length=length, size_bytes=size_bytes)
        except FileRefused as refusal:
            reason = refusal.reason
    _log.warning("artifact.file_refused", artifact_id=artifact_id, reason=reason)
    raise ArtifactNotFound(f"Artifact {artifact_id!r} has no content here.")
