"""Documents of a knowledge base: uploaded, listed, given back as they came."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect

from api.announcements import tell_readers
from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.downloads import DOWNLOAD_RESPONSES, Download, DownloadHeaders
from api.encoding import JsonResponse
from api.knowledge_models import BaseId, DocumentRead, DocumentReceipt, Name, PassageConfig
from api.paging import Page, PageQuery, Pager
from api.problems import Problem, invalid
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import ErrorCode, Identifier, JsonObject, describe_validation
from stores.knowledge import KnowledgeStore
from stores.knowledge_documents import MAX_METADATA_BYTES, DocumentStore, prepare_document
from stores.knowledge_text import ACCEPTED_TYPES, DocumentRefused, DocumentTooLarge, UnsupportedType
from stores.revocations import revoke_everywhere

router = APIRouter(prefix="/v1/knowledge-bases/{kb_id}/documents", route_class=AuthenticatedRoute, tags=["knowledge"])

_METADATA: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)
_DOCUMENT: dict[str, Any] = {
    "requestBody": {
        "description": "The document, UTF-8 of at most 10 MiB. No body is an empty one.",
        "content": {mime_type: {"schema": {"type": "string", "format": "binary"}} for mime_type in ACCEPTED_TYPES},
    }
}


@router.put(
    "/{document_id:id}",
    operation_id="putKnowledgeDocument",
    response_model=DocumentReceipt,
    responses=problems(400, 404, 413, 415),
    openapi_extra=_DOCUMENT,
)
async def put_document(
    kb_id: BaseId,
    document_id: Identifier,
    request: Request,
    caller: AgentWriter,
    host: Host,
    name: Annotated[Name | None, Query(description="For people; the id where it is left out.")] = None,
    metadata: Annotated[
        str | None, Query(description="A JSON object of at most 16 KiB that filters of questions look at.")
    ] = None,
) -> JsonResponse:
    """Upload a document, or replace it; the same again changes nothing.

    It is cut into passages at once. Who asks meanwhile finds the old passages or the new ones.
    """
    if document_id.endswith("/content"):
        raise invalid(
            "document_id",
            "must not end in /content: it would be taken for the bytes of another document",
            document_id,
            status=422,
        )
    read_metadata = _metadata(metadata)
    async with host.reads.connect() as connection:
        base = await KnowledgeStore(connection, caller.workspace_id).get(kb_id)
    try:
        content = await request.body()
    except ClientDisconnect:
        raise Problem(400, ErrorCode.INVALID_ARGUMENT, "The body broke off; send it again.") from None
    sizes = PassageConfig.model_validate(base.config).sizes()
    try:
        # Reading and cutting 10 MiB takes seconds, in which other requests are to be answered.
        document = await asyncio.to_thread(
            prepare_document, document_id, content, _mime_type(request), sizes, name=name, metadata=read_metadata
        )
    except DocumentRefused as refused:
        raise _refusal(refused) from None
    async with host.engine.begin() as connection:
        row, outcome = await DocumentStore(connection, caller.workspace_id, kb_id).put(document)
    return JsonResponse(asdict(row) | {"outcome": outcome})


@router.get("", operation_id="listKnowledgeDocuments", response_model=Page[DocumentRead], responses=problems(400, 404))
async def list_documents(
    kb_id: BaseId, query: Annotated[PageQuery, Query()], caller: RunReader, host: Host
) -> JsonResponse:
    """Page what is known of the documents, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("documents", caller.workspace_id, kb_id=kb_id), str)
    async with host.reads.connect() as connection:
        await KnowledgeStore(connection, caller.workspace_id).get(kb_id)
        found = await DocumentStore(connection, caller.workspace_id, kb_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=asdict, position_of=lambda row: row.document_id))


# Before the route of the metadata, whose id may hold slashes and would take this path too.
@router.get(
    "/{document_id:id}/content",
    operation_id="getKnowledgeDocumentContent",
    response_class=Response,
    responses=DOWNLOAD_RESPONSES,
)
async def get_document_content(
    kb_id: BaseId, document_id: Identifier, caller: RunReader, host: Host, wanted: DownloadHeaders
) -> Response:
    """Read the bytes of a document as they were uploaded, or one range of them."""
    # One view of the database for both reads: the document may be replaced between them.
    engine = host.engine.execution_options(isolation_level="REPEATABLE READ")
    async with engine.connect() as connection:
        documents = DocumentStore(connection, caller.workspace_id, kb_id)
        row = await documents.get(document_id)
        download = Download(row.name, row.mime_type, row.size_bytes, row.sha256)
        if download.is_known(wanted):
            return Response(status_code=304, headers=download.headers)
        part = download.part(wanted)
        content = await documents.read(document_id)
    if part is None:
        return Response(content, headers=download.headers_of(None))
    return Response(content[part.start : part.end], status_code=206, headers=download.headers_of(part))


@router.get(
    "/{document_id:id}", operation_id="getKnowledgeDocument", response_model=DocumentRead, responses=problems(404)
)
async def get_document(kb_id: BaseId, document_id: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read what is known of a document."""
    async with host.reads.connect() as connection:
        return JsonResponse(asdict(await DocumentStore(connection, caller.workspace_id, kb_id).get(document_id)))


@router.delete("/{document_id:id}", operation_id="deleteKnowledgeDocument", status_code=204, responses=problems(404))
async def delete_document(kb_id: BaseId, document_id: Identifier, caller: AgentWriter, host: Host) -> Response:
    """Delete a document with its passages, and take it back from open runs as a file."""
    async with host.engine.begin() as connection:
        file_key = await DocumentStore(connection, caller.workspace_id, kb_id).delete(document_id)
        revoked = await revoke_everywhere(
            connection, caller.workspace_id, "file", file_key, "The document was deleted from its knowledge base."
        )
    for run_id, sequence in revoked:
        await tell_readers(host.engine, run_id, sequence)
    return Response(status_code=204)


def _metadata(written: str | None) -> JsonObject:
    """Read the metadata of an upload.

    Raises:
        Problem: It is no JSON object, or too large.
    """
    if written is None:
        return {}
    if len(written.encode("utf-8", "surrogatepass")) > MAX_METADATA_BYTES:
        raise invalid("metadata", f"must be at most {MAX_METADATA_BYTES} bytes of JSON", status=422)
    try:
        return _METADATA.validate_json(written)
    except ValidationError as error:
        raise invalid("metadata", f"must be a JSON object: {describe_validation(error)}", written, status=422) from None


def _mime_type(request: Request) -> str:
    """Return the type of the body in lower case, without parameters: a charset of another name fails as no UTF-8."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _refusal(refused: DocumentRefused) -> Problem:
    if isinstance(refused, DocumentTooLarge):
        return Problem(413, ErrorCode.PAYLOAD_TOO_LARGE, f"body: {refused}.")
    return invalid(refused.field, str(refused), status=415 if isinstance(refused, UnsupportedType) else 422)
