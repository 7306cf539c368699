"""Files that the run was granted: those of its config, and documents of its knowledge bases (PROTOCOL 9.8, D-13)."""

import binascii

from sqlalchemy.ext.asyncio import AsyncConnection

from host_api.definition import Call, host_method
from host_api.requirements import Granted
from runhost.protocol.host_api import FileContent, FileParams
from stores.errors import FileNotFound
from stores.files import FileStore
from stores.knowledge import KnowledgeStore


@host_method("get_file", Granted("file", "file_key", frozenset({"config", "knowledge"})))
async def get_file(call: Call, params: FileParams) -> FileContent:
    """Read a file as it is now, at most 10 MiB. Its operation says where it is; with both, the config goes first.

    Raises:
        FileNotFound: It has been deleted since it was granted; `DocumentNotFound` of a document.
    """
    session, key = call.session, params.file_key
    operations = session.authorization.operations("file", key)
    async with call.services.engine.connect() as connection:
        if "config" in operations:
            try:
                return await _config_file(connection, session.workspace_id, key)
            except FileNotFound:
                if "knowledge" not in operations:
                    raise
        return await _document(connection, session.workspace_id, key)


async def _config_file(connection: AsyncConnection, workspace_id: str, key: str) -> FileContent:
    files = FileStore(connection, workspace_id)
    known, content = await files.get(key), await files.read(key)
    return _answer(key, known.file_name, known.mime_type, content)


async def _document(connection: AsyncConnection, workspace_id: str, key: str) -> FileContent:
    known, content = await KnowledgeStore(connection, workspace_id).read_document(key)
    return _answer(key, known.name, known.mime_type, content)


def _answer(key: str, name: str | None, mime_type: str | None, content: bytes) -> FileContent:
    return FileContent(
        file_key=key,
        file_name=name,
        mime_type=mime_type,
        size_bytes=len(content),
        content_base64=binascii.b2a_base64(content, newline=False).decode(),
    )
