"""Artifacts of the run and of its conversation (PROTOCOL 9.6, HOST 11)."""

import binascii

from host_api.definition import Call, host_method
from host_api.requirements import Available
from host_api.scopes import scope_of
from runhost.protocol import ArtifactMetadata, ArtifactReadResult
from runhost.protocol.host_api import (
    DEFAULT_ARTIFACT_READ_BYTES,
    MAX_ARTIFACT_READ_BYTES,
    ArtifactParams,
    ArtifactReadParams,
    ArtifactReadRangeParams,
)
from stores.file_root import FileRoot
from stores.run_artifacts import RunArtifacts

_READ = Available("artifact_read", resource_field="artifact_id")


@host_method("artifact_metadata", Available("artifact_metadata", resource_field="artifact_id"))
async def artifact_metadata(call: Call, params: ArtifactParams) -> ArtifactMetadata:
    """Read what is known of an artifact.

    Raises:
        ArtifactNotFound: There is none in the run's scope, or it has expired; which of it is not told (PM-12).
    """
    return await _artifacts(call).metadata(params.artifact_id)


@host_method("artifact_read", _READ)
async def artifact_read(call: Call, params: ArtifactReadParams) -> ArtifactReadResult:
    """Read bytes: 1 MiB unless told, at most 10 MiB at once.

    Raises:
        ArtifactNotFound: As for `artifact_metadata`, or its content is gone.
    """
    return await _read(call, params.artifact_id, params.offset, params.limit or DEFAULT_ARTIFACT_READ_BYTES)


@host_method("artifact_read_range", _READ)
async def artifact_read_range(call: Call, params: ArtifactReadRangeParams) -> ArtifactReadResult:
    """Read bytes: 64 KiB unless told, at most 10 MiB at once.

    Raises:
        ArtifactNotFound: As for `artifact_read`.
    """
    return await _read(call, params.artifact_id, params.offset, params.length)


async def _read(call: Call, artifact_id: str, offset: int, length: int) -> ArtifactReadResult:
    part = await _artifacts(call).read(artifact_id, offset=offset, length=min(length, MAX_ARTIFACT_READ_BYTES))
    if part.content is None:
        # The host does not hold these bytes: a link, or a name that the platform knows (H-F6).
        return ArtifactReadResult(
            artifact_id=artifact_id,
            mime_type=part.mime_type,
            size_bytes=part.size_bytes,
            offset=offset,
            file_key=part.storage_key,
        )
    return ArtifactReadResult(
        artifact_id=artifact_id,
        mime_type=part.mime_type,
        size_bytes=part.size_bytes,
        offset=offset,
        length=len(part.content),
        content_base64=binascii.b2a_base64(part.content, newline=False).decode(),
        has_more=offset + len(part.content) < (part.size_bytes or 0),
    )


def _artifacts(call: Call) -> RunArtifacts:
    root = call.services.file_root
    return RunArtifacts(call.services.pool, scope_of(call.session), None if root is None else FileRoot(root))
