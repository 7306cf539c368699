"""Files: what configs of agents name, and what is known of them."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.requests import ClientDisconnect

from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.downloads import DOWNLOAD_RESPONSES, UNKNOWN_TYPE, Download, DownloadHeaders
from api.encoding import JsonResponse
from api.paging import Page, PageQuery, Pager
from api.problems import Problem, invalid
from api.ranges import ByteRange
from api.resource_models import FileName, FileRead
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import MAX_ID_LENGTH, ErrorCode, Identifier
from stores.files import FileStore

router = APIRouter(prefix="/v1/files", route_class=AuthenticatedRoute, tags=["resources"])

_ANY_BYTES: dict[str, Any] = {
    "requestBody": {
        "description": "The bytes, at most 10 MiB, with their type as Content-Type. No body is an empty one.",
        "content": {UNKNOWN_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.put(
    "/{file_key:id}",
    operation_id="putFile",
    response_model=FileRead,
    responses=problems(400, 413),
    openapi_extra=_ANY_BYTES,
)
async def put_file(
    file_key: Identifier,
    request: Request,
    caller: AgentWriter,
    host: Host,
    file_name: Annotated[FileName | None, Query(description="Name of the file, for people.")] = None,
) -> JsonResponse:
    """Create or replace a file. The body is its content, whatever its type."""
    if file_key.endswith("/content"):
        raise invalid(
            "file_key",
            "must not end in /content: it would be taken for the bytes of another file",
            file_key,
            status=422,
        )
    if file_name in {".", ".."}:
        raise invalid("file_name", "must be the name of a file, not of a folder", file_name, status=422)
    mime_type = _mime_type(request)
    try:
        content = await request.body()
    except ClientDisconnect:
        raise Problem(400, ErrorCode.INVALID_ARGUMENT, "The body broke off; send it again.") from None
    async with host.engine.begin() as connection:
        file = await FileStore(connection, caller.workspace_id).put(
            file_key, content, file_name=file_name, mime_type=mime_type
        )
    return JsonResponse(asdict(file))


@router.get("", operation_id="listFiles", response_model=Page[FileRead], responses=problems(400))
async def list_files(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page what is known of the files, in order of their keys."""
    pager = Pager(host.cursors, query.list_name("files", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await FileStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=asdict, position_of=lambda file: file.file_key))


# Before the route of the metadata, whose key may hold slashes and would take this path too.
@router.get(
    "/{file_key:id}/content",
    operation_id="getFileContent",
    response_class=Response,
    responses=DOWNLOAD_RESPONSES,
)
async def get_file_content(file_key: Identifier, caller: RunReader, host: Host, wanted: DownloadHeaders) -> Response:
    """Read the bytes of a file, or one range of them."""
    # One view of the database for both reads: the file may be replaced between them.
    engine = host.engine.execution_options(isolation_level="REPEATABLE READ")
    async with engine.connect() as connection:
        files = FileStore(connection, caller.workspace_id)
        file = await files.get(file_key)
        download = Download(file.file_name or file.file_key, file.mime_type, file.size_bytes, file.sha256)
        if download.is_known(wanted):
            return Response(status_code=304, headers=download.headers)
        part = download.part(wanted)
        chosen = part or ByteRange(0, file.size_bytes)
        content = await files.read(file_key, offset=chosen.start, length=chosen.length)
    return Response(content, status_code=200 if part is None else 206, headers=download.headers_of(part))


@router.get("/{file_key:id}", operation_id="getFile", response_model=FileRead, responses=problems(404))
async def get_file(file_key: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read what is known of a file."""
    async with host.reads.connect() as connection:
        return JsonResponse(asdict(await FileStore(connection, caller.workspace_id).get(file_key)))


@router.delete("/{file_key:id}", operation_id="deleteFile", status_code=204, responses=problems(404))
async def delete_file(file_key: Identifier, caller: AgentWriter, host: Host) -> Response:
    """Delete a file and take it back from open runs."""
    async with host.engine.begin() as connection:
        await FileStore(connection, caller.workspace_id).delete(file_key)
    return Response(status_code=204)


def _mime_type(request: Request) -> str | None:
    """Return what the content is said to be, None where nothing is said.

    Raises:
        Problem: It cannot stand in a header again.
    """
    named = request.headers.get("content-type")
    if named is not None and (len(named) > MAX_ID_LENGTH or not (named.isascii() and named.isprintable())):
        raise invalid(
            "Content-Type", f"must be at most {MAX_ID_LENGTH} printable characters of ASCII", named, status=422
        )
    return named or None
