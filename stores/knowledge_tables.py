"""Tables of knowledge: bases, their documents as they were uploaded, and the passages that are searched."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

from stores.columns import COUNT, ID, JSON, KIND, TIME, UUID, EscapedText, always, metadata

knowledge_base = Table(
    "knowledge_base",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("kb_id", ID, nullable=False),
    # Short, and never given twice: what the indexes of passages begin with, so that a search in one base does
    # not read what others hold.
    Column("base_key", COUNT, always(), nullable=False),
    Column("name", EscapedText, nullable=False),
    Column("description", EscapedText),
    Column("kb_type", KIND, nullable=False),
    Column("config", JSON, nullable=False, server_default=text("'{}'")),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("workspace_id", "kb_id"),
    UniqueConstraint("base_key"),
)

knowledge_document = Table(
    "knowledge_document",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("kb_id", ID, nullable=False),
    Column("document_id", ID, nullable=False),
    # What a run is granted and reads by (D-13). Document ids are of the uploader's choice and may come again in
    # another base; a grant must never lead there.
    Column("file_key", UUID, nullable=False),
    Column("name", EscapedText, nullable=False),
    Column("mime_type", ID, nullable=False),
    Column("size_bytes", COUNT, nullable=False),
    Column("sha256", String(64), nullable=False),
    # Of everything that the passages and the row are made from: the same again is not written.
    Column("fingerprint", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("metadata", JSON, nullable=False, server_default=text("'{}'")),
    Column("chunk_count", Integer, nullable=False),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("workspace_id", "kb_id", "document_id"),
    UniqueConstraint("file_key"),
    ForeignKeyConstraint(
        ["workspace_id", "kb_id"], ["knowledge_base.workspace_id", "knowledge_base.kb_id"], ondelete="CASCADE"
    ),
    CheckConstraint("chunk_count >= 0", name="chunk_count"),
)

knowledge_passage = Table(
    "knowledge_passage",
    metadata,
    Column("file_key", UUID, nullable=False),
    Column("position", Integer, nullable=False),
    Column("base_key", COUNT, nullable=False),
    Column("content", EscapedText, nullable=False),
    # Its words, and what of it is written with spaces, both as `stores.knowledge_words` makes them. Trigrams of
    # Chinese would be nearly as many as its characters and take longer to write than all the rest; its words,
    # which are pairs of characters, find it as well, and by two characters already.
    Column("words", TSVECTOR, nullable=False),
    Column("spaced", Text),
    PrimaryKeyConstraint("file_key", "position"),
    ForeignKeyConstraint(["file_key"], ["knowledge_document.file_key"], ondelete="CASCADE"),
    Index("ix_knowledge_passage_words", "base_key", "words", postgresql_using="gin"),
    Index(
        "ix_knowledge_passage_trigrams",
        "base_key",
        "spaced",
        postgresql_using="gin",
        postgresql_ops={"spaced": "gin_trgm_ops"},
    ),
)
