"""Artifacts as the host API returns them (PROTOCOL 9.6, 9.10)."""

from pydantic import Field

from runhost.protocol.identifiers import Digest, Identifier, Kind, MediaType
from runhost.protocol.json import Count, EpochSeconds, JsonObject, StrictModel


class ArtifactMetadata(StrictModel):
    """What is known of an artifact; never where it is stored (HOST 11, H-F4).

    Attributes:
        artifact_id: Id to read it by.
        artifact_type: `image`, `file`, `voice`, `tool_result`, `platform_attachment`, ...
        mime_type: Media type.
        name: File name for display.
        size_bytes: Size of the content.
        sha256: Hex digest of the content.
        source: `platform`, `runner`, `tool` or `system`.
        conversation_id: Conversation that owns it.
        run_id: Run that made it.
        runner_id: Runner that made it.
        created_at: When it was registered.
        expires_at: When it stops being readable.
        metadata: Anything else.
    """

    artifact_id: Identifier
    artifact_type: Kind
    mime_type: MediaType | None = None
    name: str | None = None
    size_bytes: Count | None = None
    sha256: Digest | None = None
    source: Kind
    conversation_id: Identifier | None = None
    run_id: Identifier | None = None
    runner_id: Identifier | None = None
    created_at: EpochSeconds | None = None
    expires_at: EpochSeconds | None = None
    metadata: JsonObject = Field(default_factory=dict)


class ArtifactReadResult(StrictModel):
    """A part of an artifact.

    Attributes:
        artifact_id: Which artifact.
        mime_type: Media type.
        size_bytes: Size of the whole.
        offset: Where this part starts, in bytes.
        length: Bytes in this part.
        content_base64: The part itself.
        file_key: Where to fetch it when it is not returned here.
        has_more: More bytes follow.
    """

    artifact_id: Identifier
    mime_type: MediaType | None = None
    size_bytes: Count | None = None
    offset: Count = 0
    length: Count | None = None
    content_base64: str | None = None
    file_key: str | None = None
    has_more: bool = False
