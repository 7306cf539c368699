"""Documents of knowledge bases. What is read drops what a newer host adds."""

from typing import Literal

from pydantic import Field

from runhost.protocol import Identifier, JsonObject, LenientModel, StrictModel, Timestamp


class PassageConfig(StrictModel):
    """How documents are cut into passages.

    Attributes:
        passage_characters: Most that a passage holds, 200 to 4,000.
        overlap_characters: About how much of its end the next one repeats; at most a quarter of a passage.
    """

    passage_characters: int = Field(default=800, ge=200, le=4_000)
    overlap_characters: int = Field(default=100, ge=0, le=1_000)


class KnowledgeBaseRequest(StrictModel):
    """A knowledge base.

    Attributes:
        name: For people; the id if left out.
        description: What it knows, for people and models.
        kb_type: `postgres`, kept and searched by the host itself.
        config: How documents are cut; a change is for those that are uploaded from then on.
    """

    name: str | None = Field(default=None, min_length=1, max_length=255)
    description: str | None = Field(default=None, max_length=10_000)
    kb_type: Literal["postgres"] = "postgres"
    config: PassageConfig = PassageConfig()


class KnowledgeBaseRead(LenientModel):
    """A knowledge base as the host keeps it."""

    kb_id: str
    name: str
    description: str | None = None
    kb_type: str
    config: JsonObject
    created_at: Timestamp
    updated_at: Timestamp


class DocumentRead(LenientModel):
    """What is known of a document.

    Attributes:
        file_key: What runs read its bytes by, where their grants include the files of the base.
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
    created_at: Timestamp
    updated_at: Timestamp


class DocumentReceipt(DocumentRead):
    """A document that was uploaded; `outcome` is `created`, `replaced`, or `unchanged` where it was there already."""

    outcome: str


class DocumentUpload(StrictModel):
    """A document to upload.

    Attributes:
        content: UTF-8, at most 10 MiB.
        mime_type: `text/plain`, `text/markdown`, `text/html` or `application/json`.
        name: For people; the id if left out.
        metadata: What filters of questions look at; at most 16 KiB as JSON.
    """

    content: bytes = Field(repr=False)
    mime_type: str = "text/plain"
    name: Identifier | None = None
    metadata: JsonObject = Field(default_factory=dict)
