"""Artifacts: what is known of them, and their bytes."""

from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from api.auth import ArtifactReader, AuthenticatedRoute
from api.downloads import DOWNLOAD_RESPONSES, Download, DownloadHeaders
from api.encoding import JsonResponse
from api.models import ArtifactRead
from api.ranges import ByteRange
from api.routes.reads import read_artifact
from api.routes.responses import problems
from api.services import Host, Services
from runhost.protocol import Identifier
from stores.artifacts import ArtifactStore

router = APIRouter(prefix="/v1/artifacts", route_class=AuthenticatedRoute, tags=["artifacts"])

SLICE_BYTES = 256 * 1024


# Before the route of the metadata, whose id may hold slashes and would take this path too.
@router.get(
    "/{artifact_id:id}/content",
    operation_id="getArtifactContent",
    response_class=Response,
    responses=DOWNLOAD_RESPONSES,
)
async def get_artifact_content(
    artifact_id: Identifier, caller: ArtifactReader, host: Host, wanted: DownloadHeaders
) -> Response:
    """Read the bytes of an artifact, or one range of them."""
    async with host.reads.connect() as connection:
        artifact = await ArtifactStore(connection, caller.workspace_id).get(artifact_id)
    download = Download(
        artifact.name or artifact.artifact_id, artifact.mime_type, artifact.size_bytes or 0, artifact.sha256
    )
    if download.is_known(wanted):
        return Response(status_code=304, headers=download.headers)
    part = download.part(wanted)
    chosen = part or ByteRange(0, download.size_bytes)
    first = await _read(host, caller.workspace_id, artifact_id, chosen.start, min(SLICE_BYTES, chosen.length))
    return StreamingResponse(
        _slices(host, caller.workspace_id, artifact_id, chosen, first),
        status_code=200 if part is None else 206,
        headers=download.headers_of(part),
    )


@router.get("/{artifact_id:id}", operation_id="getArtifact", response_model=ArtifactRead, responses=problems(404))
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
        store = ArtifactStore(connection, workspace_id, host.files)
        return await store.read(artifact_id, offset=offset, length=length)
