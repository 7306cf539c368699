"""Documents of a knowledge base: the bytes as they came, and the passages cut from them."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import orjson
from sqlalchemy import ColumnElement, RowMapping, bindparam, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Integer, Text

from runhost.protocol import JsonObject
from stores.columns import EscapedText
from stores.errors import DocumentNotFound, KnowledgeBaseNotFound
from stores.identifiers import new_uuid
from stores.jsonb import digest
from stores.knowledge_tables import knowledge_base, knowledge_document, knowledge_passage
from stores.knowledge_text import DocumentTooLarge, read_text
from stores.knowledge_words import searchable_words, spaced_part
from stores.passages import PassageSizes, cut_passages

MAX_PASSAGES: Final = 20_000
MAX_METADATA_BYTES: Final = 16 * 1024
# One statement writes so many, far below the limit of its time.
_BATCH = 100
# Changes with the way passages and their words are made: documents uploaded again are then made anew.
_MAKING = b"passages 1"

_FACTS = tuple(
    column for column in knowledge_document.columns if column.name not in {"workspace_id", "content", "fingerprint"}
)
_ADD_PASSAGES = text("""
INSERT INTO knowledge_passage (file_key, position, base_key, content, words, spaced)
SELECT :file_key, position, :base_key, content, to_tsvector('english', words), spaced
FROM unnest(:positions, :contents, :words, :spaced) AS passage (position, content, words, spaced)
""").bindparams(
    bindparam("file_key", type_=knowledge_document.c.file_key.type),
    bindparam("positions", type_=ARRAY(Integer)),
    bindparam("contents", type_=ARRAY(EscapedText)),
    bindparam("words", type_=ARRAY(Text)),
    bindparam("spaced", type_=ARRAY(EscapedText)),
)

Outcome = Literal["created", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, and what it is found by.

    Attributes:
        words: Its words, separated by spaces.
        spaced: What of it is written with spaces, if anything.
    """

    content: str
    words: str
    spaced: str | None


@dataclass(frozen=True)
class PreparedDocument:
    """A document with everything made from it, ready to be written.

    Attributes:
        passages: At most `MAX_PASSAGES`.
        fingerprint: Equal for documents that would be stored alike.
    """

    document_id: str
    name: str
    mime_type: str
    metadata: JsonObject
    content: bytes
    sha256: str
    passages: list[Passage]
    fingerprint: bytes


@dataclass(frozen=True)
class DocumentRow:
    """What is known of a document.

    Attributes:
        file_key: What it is granted and read by as a file (D-13); a document uploaded again keeps it.
        chunk_count: How many passages it was cut into.
    """

    document_id: str
    file_key: str
    kb_id: str
    name: str
    mime_type: str
    size_bytes: int
    sha256: str
    metadata: JsonObject
    chunk_count: int
    created_at: datetime
    updated_at: datetime


def prepare_document(
    document_id: str, content: bytes, mime_type: str, sizes: PassageSizes, *, name: str | None, metadata: JsonObject
) -> PreparedDocument:
    """Read a document and cut it; blocking, up to seconds for 10 MiB. The same input gives the same passages.

    Args:
        document_id: Its id in the base.
        content: The bytes, at most 10 MiB.
        mime_type: What they are, without parameters.
        sizes: How to cut.
        name: For people; the id where there is none.
        metadata: What filters look at; at most `MAX_METADATA_BYTES` as JSON, which is for the caller to check.

    Raises:
        DocumentRefused: It is too large, of another type, or not what its type says.
    """
    passages = cut_passages(read_text(content, mime_type), sizes)
    if len(passages) > MAX_PASSAGES:
        raise DocumentTooLarge(
            f"it gives {len(passages)} passages, more than {MAX_PASSAGES}; split the document, or give the base "
            f"larger passages"
        )
    facts: JsonObject = {
        "name": name or document_id,
        "mime_type": mime_type,
        "metadata": metadata,
        "sizes": [sizes.passage_characters, sizes.overlap_characters],
    }
    sha256 = hashlib.sha256(content)
    return PreparedDocument(
        document_id=document_id,
        name=name or document_id,
        mime_type=mime_type,
        metadata=metadata,
        content=content,
        sha256=sha256.hexdigest(),
        passages=[Passage(cut, " ".join(searchable_words(cut)), spaced_part(cut)) for cut in passages],
        fingerprint=hashlib.sha256(_MAKING + sha256.digest() + digest(facts)).digest(),
    )


class DocumentStore:
    """Documents of one knowledge base."""

    def __init__(self, connection: AsyncConnection, workspace_id: str, kb_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._kb_id = kb_id

    async def put(self, document: PreparedDocument) -> tuple[DocumentRow, Outcome]:
        """Create or replace a document; the same again writes nothing.

        All in the caller's transaction: who searches meanwhile sees the old passages or the new ones. Uploads
        of one document wait for each other.

        Raises:
            KnowledgeBaseNotFound: There is no such base in this workspace.
        """
        base_key = await self._hold_base(document.document_id)
        rows = await self._connection.execute(
            select(*_FACTS, knowledge_document.c.fingerprint).where(self._is(document.document_id))
        )
        known = rows.mappings().one_or_none()
        if known is not None and known["fingerprint"] == document.fingerprint:
            return _read(known), "unchanged"
        row = await self._write(document, None if known is None else known["file_key"])
        await self._replace_passages(document, UUID(row.file_key), base_key)
        return row, "created" if known is None else "replaced"

    async def get(self, document_id: str) -> DocumentRow:
        """Return what is known of a document.

        Raises:
            DocumentNotFound: There is none in this base, or no such base.
        """
        rows = await self._connection.execute(select(*_FACTS).where(self._is(document_id)))
        row = rows.mappings().one_or_none()
        if row is None:
            raise _not_found(document_id)
        return _read(row)

    async def read(self, document_id: str) -> bytes:
        """Return the bytes of a document as they were uploaded.

        Raises:
            DocumentNotFound: As in `get`.
        """
        content = await self._connection.scalar(select(knowledge_document.c.content).where(self._is(document_id)))
        if content is None:
            raise _not_found(document_id)
        return content

    async def delete(self, document_id: str) -> str:
        """Delete a document with its passages; returns its file key, which grants may name.

        Raises:
            DocumentNotFound: As in `get`.
        """
        file_key = await self._connection.scalar(
            delete(knowledge_document).where(self._is(document_id)).returning(knowledge_document.c.file_key)
        )
        if file_key is None:
            raise _not_found(document_id)
        return str(file_key)

    async def _hold_base(self, document_id: str) -> int:
        """Keep the base from being deleted, and other uploads of the document out, until the transaction ends."""
        # A new document has no row to lock.
        name = orjson.dumps(["knowledge document", self._workspace_id, self._kb_id, document_id]).decode()
        await self._connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))
        base_key = await self._connection.scalar(
            select(knowledge_base.c.base_key)
            .where(knowledge_base.c.workspace_id == self._workspace_id, knowledge_base.c.kb_id == self._kb_id)
            .with_for_update(key_share=True, read=True)
        )
        if base_key is None:
            raise KnowledgeBaseNotFound(f"There is no knowledge base {self._kb_id!r} in this workspace.")
        return base_key

    async def _write(self, document: PreparedDocument, file_key: UUID | None) -> DocumentRow:
        values = {
            "name": document.name,
            "mime_type": document.mime_type,
            "size_bytes": len(document.content),
            "sha256": document.sha256,
            "fingerprint": document.fingerprint,
            "content": document.content,
            "metadata": document.metadata,
            "chunk_count": len(document.passages),
        }
        if file_key is None:
            statement = (
                insert(knowledge_document)
                .values(
                    workspace_id=self._workspace_id,
                    kb_id=self._kb_id,
                    document_id=document.document_id,
                    file_key=new_uuid(),
                    **values,
                )
                .returning(*_FACTS)
            )
        else:
            statement = (
                update(knowledge_document)
                .where(knowledge_document.c.file_key == file_key)
                .values(**values, updated_at=func.now())
                .returning(*_FACTS)
            )
        return _read((await self._connection.execute(statement)).mappings().one())

    async def _replace_passages(self, document: PreparedDocument, file_key: UUID, base_key: int) -> None:
        await self._connection.execute(delete(knowledge_passage).where(knowledge_passage.c.file_key == file_key))
        for start in range(0, len(document.passages), _BATCH):
            batch = document.passages[start : start + _BATCH]
            await self._connection.execute(
                _ADD_PASSAGES,
                {
                    "file_key": file_key,
                    "base_key": base_key,
                    "positions": list(range(start, start + len(batch))),
                    "contents": [passage.content for passage in batch],
                    "words": [passage.words for passage in batch],
                    "spaced": [passage.spaced for passage in batch],
                },
            )

    def _is(self, document_id: str) -> ColumnElement[bool]:
        return (
            (knowledge_document.c.workspace_id == self._workspace_id)
            & (knowledge_document.c.kb_id == self._kb_id)
            & (knowledge_document.c.document_id == document_id)
        )

    async def list(self, *, after: str = "", limit: int) -> list[DocumentRow]:
        """Return what is known of documents in order of their ids, from behind ``after``."""
        rows = await self._connection.execute(
            select(*_FACTS)
            .where(
                knowledge_document.c.workspace_id == self._workspace_id,
                knowledge_document.c.kb_id == self._kb_id,
                knowledge_document.c.document_id > after,
            )
            .order_by(knowledge_document.c.document_id)
            .limit(limit)
        )
        return [_read(row) for row in rows.mappings()]


def _read(row: RowMapping) -> DocumentRow:
    fields: dict[str, Any] = {column.name: row[column] for column in _FACTS}
    fields["file_key"] = str(fields["file_key"])
    return DocumentRow(**fields)


def _not_found(document_id: str) -> DocumentNotFound:
    return DocumentNotFound(f"There is no document {document_id!r} in this knowledge base.")
