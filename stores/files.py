"""Files that a workspace has to grant, such as those that an agent's config names (HOST 6).

They have a table of their own and not the artifacts' content table: they are replaced under their key, may be
ten times as large, and their parts are read without the rest.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import RowMapping, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from stores.errors import FileNotFound
from stores.registry import Registry
from stores.resource_tables import config_file
from stores.revocations import revoke_everywhere

MAX_FILE_BYTES: Final = 10 * 1024 * 1024

_FACTS = tuple(column for column in config_file.columns if column.name != "content")


@dataclass(frozen=True)
class FileRow:
    """What is known of a file.

    Attributes:
        file_key: What configs name it by.
        file_name: For people.
        mime_type: What it was said to be.
        size_bytes: Its size.
        sha256: Of its content, in hex.
    """

    file_key: str
    file_name: str | None
    mime_type: str | None
    size_bytes: int
    sha256: str
    created_at: datetime
    updated_at: datetime


class FileStore:
    """Files of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._rows = Registry(
            connection, workspace_id, table=config_file, key=config_file.c.file_key, read=_read, columns=_FACTS
        )

    async def put(
        self, file_key: str, content: bytes, *, file_name: str | None = None, mime_type: str | None = None
    ) -> FileRow:
        """Create or replace a file.

        Raises:
            ValueError: The content exceeds `MAX_FILE_BYTES`.
        """
        if len(content) > MAX_FILE_BYTES:
            raise ValueError(f"file {file_key!r} has {len(content)} bytes; at most {MAX_FILE_BYTES} can be kept")
        values = {
            "file_name": file_name,
            "mime_type": mime_type,
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "content": content,
        }
        row = await self._connection.execute(
            insert(config_file)
            .values(workspace_id=self._workspace_id, file_key=file_key, **values)
            .on_conflict_do_update(
                index_elements=[config_file.c.workspace_id, config_file.c.file_key],
                set_={**values, "updated_at": func.now()},
            )
            .returning(*_FACTS)
        )
        return _read(row.mappings().one())

    async def get(self, file_key: str) -> FileRow:
        """Return what is known of a file.

        Raises:
            FileNotFound: There is none in this workspace.
        """
        found = await self._rows.find(file_key)
        if found is None:
            raise _not_found(file_key)
        return found

    async def list(self, *, after: str = "", limit: int) -> list[FileRow]:
        """Return what is known of files in order of their keys, from behind ``after``."""
        return await self._rows.list(after=after, limit=limit)

    async def read(self, file_key: str, *, offset: int = 0, length: int = MAX_FILE_BYTES) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end; the whole content unless told otherwise.

        Raises:
            FileNotFound: There is none in this workspace.
        """
        content = await self._connection.scalar(
            select(func.substring(config_file.c.content, offset + 1, length)).where(
                config_file.c.workspace_id == self._workspace_id, config_file.c.file_key == file_key
            )
        )
        if content is None:
            raise _not_found(file_key)
        return content

    async def delete(self, file_key: str) -> None:
        """Delete a file and take it back from open runs.

        Raises:
            FileNotFound: There is none in this workspace.
        """
        if not await self._rows.delete(file_key):
            raise _not_found(file_key)
        await revoke_everywhere(self._connection, self._workspace_id, "file", file_key, "The file was deleted.")


def _read(row: RowMapping) -> FileRow:
    return FileRow(**{name: value for name, value in row.items() if name != "workspace_id"})


def _not_found(file_key: str) -> FileNotFound:
    return FileNotFound(f"There is no file {file_key!r} in this workspace.")
