"""Artifacts: what is known of them, and their bytes."""

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header
from starlette.responses import Response, StreamingResponse

from api.auth import ArtifactReader, AuthenticatedRoute
from api.encoding import JsonResponse
from api.models import ArtifactRead
from api.problems import Problem
from api.ranges import ByteRange, Unsatisfiable, requested_range
from api.routes.reads import read_artifact
from api.routes.responses import problems
from api.services import Host, Services
from runhost.protocol import ArtifactMetadata, ErrorCode, Identifier
from stores.artifacts import ArtifactStore

router = APIRouter(prefix="/v1/artifacts", route_class=AuthenticatedRoute, tags=["artifacts"])

SLICE_BYTES = 256 * 1024
_UNKNOWN_TYPE = "application/octet-stream"


# Before the route of the metadata, whose id may hold slashes and would take this path too.
@router.get(
    "/{artifact_id:path}/content",
    operation_id="getArtifactContent",
    response_class=Response,
    responses={
        200: {"description": "The bytes.", "content": {_UNKNOWN_TYPE: {}}},
        206: {"description": "The part asked for.", "content": {_UNKNOWN_TYPE: {}}},
        304: {"description": "The client has these bytes."},
        **problems(404, 416),
    },
)
async def get_artifact_content(
    artifact_id: Identifier,
    caller: ArtifactReader,
    host: Host,
    range_: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
    if_range: Annotated[str | None, Header()] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Read the bytes of an artifact, or one range of them."""
    async with host.reads.connect() as connection:
        artifact = await ArtifactStore(connection, caller.workspace_id).get(artifact_id)
    headers = _headers(artifact)
    if if_none_match is not None and headers["ETag"] in {tag.strip() for tag in if_none_match.split(",")}:
        return Response(status_code=304, headers=headers)
    size = artifact.size_bytes or 0
    try:
        # A range of other bytes than the client has is of no use to it.
        part = requested_range(range_, size) if if_range in {None, headers["ETag"]} else None
    except Unsatisfiable:
        raise _unsatisfiable(size) from None
    chosen = part or ByteRange(0, size)
    first = await _read(host, caller.workspace_id, artifact_id, chosen.start, min(SLICE_BYTES, chosen.length))
    headers["Content-Length"] = str(chosen.length)
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{size}"
    return StreamingResponse(
        _slices(host, caller.workspace_id, artifact_id, chosen, first),
        status_code=200 if part is None else 206,
        headers=headers,
        media_type=_media_type(artifact),
    )


@router.get("/{artifact_id:path}", operation_id="getArtifact", response_model=ArtifactRead, responses=problems(404))
async def get_artifact(artifact_id: Identifier, caller: ArtifactReader, host: Host) -> JsonResponse:
    """Read what is known of an artifact."""
    async with host.reads.connect() as connection:
        return JsonResponse(read_artifact(await ArtifactStore(connection, caller.workspace_id).get(artifact_id)))


async def _slices(
    host: Services, workspace_id: str, artifact_id: str, chosen: ByteRange, first: bytes
) -> AsyncIterator[bytes]:
    """Yield the bytes in pieces, each read on its own: a slow client holds no connection."""
    yield first
    position = chosen.start + len(first)
    while position < chosen.end:
        piece = await _read(host, workspace_id, artifact_id, position, min(SLICE_BYTES, chosen.end - position))
        yield piece
        position += len(piece)


async def _read(host: Services, workspace_id: str, artifact_id: str, offset: int, length: int) -> bytes:
    async with host.reads.connect() as connection:
        return await ArtifactStore(connection, workspace_id).read(artifact_id, offset=offset, length=length)


def _headers(artifact: ArtifactMetadata) -> dict[str, str]:
    name = quote((artifact.name or artifact.artifact_id).encode("utf-8", "replace"), safe="")
    return {
        "ETag": f'"{artifact.sha256}"',
        "Accept-Ranges": "bytes",
        # What a runner or a person sent is never shown as a page of ours.
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private",
    }


def _media_type(artifact: ArtifactMetadata) -> str:
    """Return the type as far as it can stand in a header."""
    named = artifact.mime_type or _UNKNOWN_TYPE
    return named if named.isascii() and named.isprintable() else _UNKNOWN_TYPE


def _unsatisfiable(size: int) -> Problem:
    return Problem(
        416,
        ErrorCode.INVALID_ARGUMENT,
        f"Range: the content has {size} bytes; ask for some of them.",
        headers={"Content-Range": f"bytes */{size}"},
    )
