"""Artifacts as a run reads them: its own, and those of its conversation (PROTOCOL 9.6, PM-12)."""

from dataclasses import dataclass

import asyncpg

from runhost.protocol import ArtifactMetadata
from stores.artifact_content import BLOB, FILE, read_file
from stores.errors import ArtifactNotFound
from stores.escaping import restore
from stores.file_root import FileRoot
from stores.jsonb import loads
from stores.run_scope import READABLE, RunScope
from stores.times import to_epoch

# Positions in bytea are 32 bits; nothing in the table is as long.
_MAX_OFFSET = 2**30

_READABLE = f"artifact_id = $6 AND (expires_at IS NULL OR expires_at > now()) AND {READABLE}"
_METADATA = f"""
SELECT artifact_id, artifact_type, mime_type, name, size_bytes, sha256, source, conversation_id, run_id, runner_id,
    created_at, expires_at, metadata
FROM artifact
WHERE {_READABLE}
"""  # noqa: S608 - constants only
_CONTENT = f"""
SELECT mime_type, size_bytes, storage_type, storage_key, CASE WHEN storage_type = '{BLOB}' THEN (
    SELECT substring(b.content FROM $7 + 1 FOR $8) FROM artifact_blob b
    WHERE b.workspace_id = artifact.workspace_id AND b.sha256 = artifact.sha256
) END AS content
FROM artifact
WHERE {_READABLE}
"""  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class ArtifactPart:
    """A part of an artifact.

    Attributes:
        size_bytes: Of the whole.
        content: Bytes of the part, none behind the end; None where the host does not hold the content.
        storage_key: Where it is instead, if anywhere.
    """

    mime_type: str | None
    size_bytes: int | None
    content: bytes | None
    storage_key: str | None = None


class RunArtifacts:
    """Artifacts that one run may read. One that expired is not there, like one of somebody else (H-F5)."""

    def __init__(self, pool: asyncpg.Pool, scope: RunScope, files: FileRoot | None) -> None:
        self._pool = pool
        self._scope = scope
        self._files = files

    async def metadata(self, artifact_id: str) -> ArtifactMetadata:
        """Return what is known of an artifact; never where it is kept (H-F4).

        Raises:
            ArtifactNotFound: There is none that this run may read.
        """
        row = await self._pool.fetchrow(_METADATA, *self._scope.arguments, artifact_id)
        if row is None:
            raise _not_found(artifact_id)
        return ArtifactMetadata.model_validate(
            {
                **row,
                "name": row["name"] and restore(row["name"]),
                "run_id": row["run_id"] and str(row["run_id"]),
                "created_at": to_epoch(row["created_at"]),
                "expires_at": to_epoch(row["expires_at"]),
                "metadata": loads(row["metadata"]),
            }
        )

    async def read(self, artifact_id: str, *, offset: int, length: int) -> ArtifactPart:
        """Return ``length`` bytes from ``offset``, fewer at the end and none behind it.

        Raises:
            ArtifactNotFound: There is none that this run may read, or its content is gone.
        """
        row = await self._pool.fetchrow(_CONTENT, *self._scope.arguments, artifact_id, min(offset, _MAX_OFFSET), length)
        if row is None:
            raise _not_found(artifact_id)
        kind, size = row["storage_type"], row["size_bytes"]
        key = row["storage_key"] and restore(row["storage_key"])
        if kind == FILE:
            content = await read_file(self._files, artifact_id, key, offset=offset, length=length, size_bytes=size)
            return ArtifactPart(row["mime_type"], size, content)
        if kind == BLOB and row["content"] is None:
            raise _not_found(artifact_id)
        return ArtifactPart(row["mime_type"], size, row["content"], key)


def _not_found(artifact_id: str) -> ArtifactNotFound:
    return ArtifactNotFound(f"There is no artifact {artifact_id!r} that this run may read.")
