"""Documents of the knowledge routes."""

from datetime import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from runhost.protocol import Identifier, JsonObject, StrictModel
from runhost.protocol.host_api import RetrieveParams
from stores.passages import (
    DEFAULT_OVERLAP_CHARACTERS,
    DEFAULT_PASSAGE_CHARACTERS,
    MAX_PASSAGE_CHARACTERS,
    MIN_PASSAGE_CHARACTERS,
    PassageSizes,
)

MAX_DESCRIPTION_LENGTH: Final = 10_000

# Stands in a path with the ids of documents behind it, so it has no slash.
BaseId = Annotated[Identifier, StringConstraints(pattern=r"^[^/]+$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class PassageConfig(StrictModel):
    """How documents are cut into passages.

    Attributes:
        passage_characters: Most that a passage holds.
        overlap_characters: About how much of its end the next one repeats; at most a quarter of a passage.
    """

    passage_characters: int = Field(
        default=DEFAULT_PASSAGE_CHARACTERS, ge=MIN_PASSAGE_CHARACTERS, le=MAX_PASSAGE_CHARACTERS
    )
    overlap_characters: int = Field(default=DEFAULT_OVERLAP_CHARACTERS, ge=0)

    @model_validator(mode="after")
    def _has_fitting_sizes(self) -> Self:
        self.sizes()
        return self

    def sizes(self) -> PassageSizes:
        """Return the sizes."""
        return PassageSizes(self.passage_characters, self.overlap_characters)


class KnowledgeBaseRequest(StrictModel):
    """A knowledge base.

    Attributes:
        name: For people; the id where it is left out.
        description: What it knows, for people and models.
        kb_type: `postgres`, kept and searched by the host itself.
        config: How documents are cut; a change is for those that are uploaded from then on.
    """

    name: Name | None = None
    description: Annotated[str, StringConstraints(max_length=MAX_DESCRIPTION_LENGTH)] | None = None
    kb_type: Literal["postgres"] = "postgres"
    config: PassageConfig = PassageConfig()


class KnowledgeBaseRead(BaseModel):
    """A knowledge base."""

    kb_id: str
    name: str
    description: str | None
    kb_type: str
    config: JsonObject
    created_at: datetime
    updated_at: datetime


class DocumentRead(BaseModel):
    """What is known of a document.

    Attributes:
        file_key: What runs read its bytes by, where their grants include the files of the base (D-13).
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


class DocumentReceipt(DocumentRead):
    """A document that was uploaded. `unchanged`: it was here before, alike in everything."""

    outcome: Literal["created", "replaced", "unchanged"]


class QuestionRequest(StrictModel):
    """A question to a base, as runs ask it.

    Attributes:
        query_text: A question, or words, or a part of the text.
        top_k: Most passages that are answered, at most 100.
        filters: What the metadata of documents must contain: equal values under the same keys.
    """

    query_text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    top_k: int = Field(default=5, ge=1, le=100)
    filters: JsonObject | None = None

    def params(self, kb_id: str) -> RetrieveParams:
        """Return the question as the provider takes it."""
        return RetrieveParams(kb_id=kb_id, query_text=self.query_text, top_k=self.top_k, filters=self.filters)
