"""Knowledge bases of a workspace, and their documents as files that a run may be granted (D-13)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import RowMapping, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import JsonObject
from stores.errors import DocumentNotFound, KnowledgeBaseNotFound
from stores.knowledge_tables import knowledge_base, knowledge_document

POSTGRES: Final = "postgres"
"""The kind of knowledge base that is kept and searched right here."""


@dataclass(frozen=True)
class KnowledgeBaseRow:
    """A knowledge base.

    Attributes:
        kb_id: What configs and calls name it by.
        name: For people.
        description: What it knows, for people and models.
        kb_type: Who retrieves from it; `POSTGRES` is the host itself.
        config: For whoever retrieves; of `POSTGRES`, the fields of `stores.passages.PassageSizes`.
        base_key: What its passages name it by; never given twice.
    """

    kb_id: str
    name: str
    description: str | None
    kb_type: str
    config: JsonObject
    base_key: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class KnowledgeFile:
    """A document of a base as a file.

    Attributes:
        file_key: What it is granted and read by; gone for good when the document is.
        document_id: Its id in the base.
    """

    file_key: str
    kb_id: str
    document_id: str
    name: str
    mime_type: str
    size_bytes: int


_FILE = tuple(
    knowledge_document.c[name] for name in ("file_key", "kb_id", "document_id", "name", "mime_type", "size_bytes")
)


class KnowledgeStore:
    """Knowledge bases of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def put(self, kb_id: str, new: Mapping[str, Any]) -> KnowledgeBaseRow:
        """Create or change a base. Its documents stay; a changed config is for those that come.

        Args:
            kb_id: The base.
            new: ``name``, ``description``, ``kb_type`` and ``config``.
        """
        row = await self._connection.execute(
            insert(knowledge_base)
            .values(workspace_id=self._workspace_id, kb_id=kb_id, **new)
            .on_conflict_do_update(
                index_elements=[knowledge_base.c.workspace_id, knowledge_base.c.kb_id],
                set_={**new, "updated_at": func.now()},
            )
            .returning(knowledge_base)
        )
        return _base(row.mappings().one())

    async def find(self, kb_id: str) -> KnowledgeBaseRow | None:
        """Return a base, None where there is none in this workspace."""
        rows = await self._connection.execute(
            select(knowledge_base).where(
                knowledge_base.c.workspace_id == self._workspace_id, knowledge_base.c.kb_id == kb_id
            )
        )
        row = rows.mappings().one_or_none()
        return None if row is None else _base(row)

    async def get(self, kb_id: str) -> KnowledgeBaseRow:
        """Return a base.

        Raises:
            KnowledgeBaseNotFound: There is none in this workspace.
        """
        found = await self.find(kb_id)
        if found is None:
            raise _not_found(kb_id)
        return found

    async def list_chosen(self, kb_ids: Collection[str]) -> list[KnowledgeBaseRow]:
        """Return those of the named bases that exist, in order of their ids."""
        rows = await self._connection.execute(
            select(knowledge_base)
            .where(knowledge_base.c.workspace_id == self._workspace_id, knowledge_base.c.kb_id.in_(kb_ids))
            .order_by(knowledge_base.c.kb_id)
        )
        return [_base(row) for row in rows.mappings()]

    async def delete(self, kb_id: str) -> None:
        """Delete a base with its documents.

        Raises:
            KnowledgeBaseNotFound: There is none in this workspace.
        """
        gone = await self._connection.execute(
            delete(knowledge_base).where(
                knowledge_base.c.workspace_id == self._workspace_id, knowledge_base.c.kb_id == kb_id
            )
        )
        if gone.rowcount == 0:
            raise _not_found(kb_id)

    async def read_document(self, file_key: str) -> tuple[KnowledgeFile, bytes]:
        """Return a document by its file key: what is known of it, and its bytes as they were uploaded.

        Whether the reader may have it, by its key or by the base that it is in now, is for the caller to say.

        Raises:
            DocumentNotFound: There is none in this workspace.
        """
        rows = await self._connection.execute(
            select(*_FILE, knowledge_document.c.content).where(
                knowledge_document.c.workspace_id == self._workspace_id,
                knowledge_document.c.file_key == _uuid(file_key),
            )
        )
        row = rows.mappings().one_or_none()
        if row is None:
            raise DocumentNotFound(f"There is no file {file_key!r} in this workspace.")
        return _file(row), row["content"]

    async def list(self, *, after: str = "", limit: int) -> list[KnowledgeBaseRow]:
        """Return bases in order of their ids, from behind ``after``."""
        rows = await self._connection.execute(
            select(knowledge_base)
            .where(knowledge_base.c.workspace_id == self._workspace_id, knowledge_base.c.kb_id > after)
            .order_by(knowledge_base.c.kb_id)
            .limit(limit)
        )
        return [_base(row) for row in rows.mappings()]


def _base(row: RowMapping) -> KnowledgeBaseRow:
    return KnowledgeBaseRow(**{name: value for name, value in row.items() if name != "workspace_id"})


def _file(row: RowMapping) -> KnowledgeFile:
    fields: dict[str, Any] = {column.name: row[column] for column in _FILE}
    fields["file_key"] = str(fields["file_key"])
    return KnowledgeFile(**fields)


def _uuid(file_key: str) -> UUID | None:
    """Read a file key; what is none names nothing."""
    try:
        return UUID(file_key)
    except ValueError:
        return None


def _not_found(kb_id: str) -> KnowledgeBaseNotFound:
    return KnowledgeBaseNotFound(f"There is no knowledge base {kb_id!r} in this workspace.")
