"""What people and models say: messages, chunks, references to artifacts, token usage (PROTOCOL 5.6, 7.2)."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AliasChoices, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from runhost.protocol.identifiers import Digest, Identifier, Kind, MediaType
from runhost.protocol.json import (
    MAX_INTEGER,
    MIN_INTEGER,
    Count,
    EpochSeconds,
    JsonObject,
    JsonValue,
    LenientModel,
    StrictModel,
)

MessageRole: TypeAlias = Literal["user", "assistant", "system", "tool"]
ContentType: TypeAlias = Literal["text", "image_url", "image_base64", "file_url", "file_base64", "file"]
ChunkMode: TypeAlias = Literal["append", "replace"]

_NEEDED_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image_url": ("image_url",),
    "image_base64": ("image_base64",),
    "file_url": ("file_url",),
    "file_base64": ("file_base64",),
    "file": ("file_url", "file_base64"),
}


class ArtifactRef(StrictModel):
    """Reference to a stored artifact; never its content (D-30).

    Attributes:
        artifact_id: Id to read it by.
        artifact_type: `image`, `file`, `voice`, `tool_result`, `platform_attachment`, ...
        mime_type: Media type.
        name: File name for display.
        size_bytes: Size of the content; `size` is accepted as input.
        sha256: Hex digest of the content; `digest` is accepted as input.
        summary: What it holds, in a sentence.
        expires_at: When it stops being readable.
    """

    # Both names of an aliased field are accepted, only the canonical one is written.
    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=False)

    artifact_id: Identifier
    artifact_type: Kind | None = None
    mime_type: MediaType | None = None
    name: str | None = None
    size_bytes: Count | None = Field(default=None, validation_alias=AliasChoices("size_bytes", "size"))
    sha256: Digest | None = Field(default=None, validation_alias=AliasChoices("sha256", "digest"))
    summary: str | None = None
    expires_at: EpochSeconds | None = None


class ImageURL(StrictModel):
    """Where an image is.

    Attributes:
        url: `https:` or `data:` address.
        detail: Resolution a model should look at it with, `low`, `high` or `auto`.
    """

    url: str
    detail: str | None = None


class ContentElement(StrictModel):
    """One part of a message (PROTOCOL 5.6). The field that `type` names must be present.

    Attributes:
        type: Which of the other fields holds the content; `file` takes either file field.
        text: Plain text.
        image_url: Address of an image.
        image_base64: Image as base64 or data URL.
        file_url: Address of a file.
        file_base64: File as base64 or data URL.
        file_name: Name of that file for display.
    """

    type: ContentType
    text: str | None = None
    image_url: ImageURL | None = None
    image_base64: str | None = None
    file_url: str | None = None
    file_base64: str | None = None
    file_name: str | None = None

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        needed = _NEEDED_FIELDS[self.type]
        if all(getattr(self, name) is None for name in needed):
            raise PydanticCustomError(
                "content_missing",
                "Content element of type {type} needs {fields}",
                {"type": self.type, "fields": " or ".join(needed)},
            )
        return self


class FunctionCall(StrictModel):
    """Function that a model wants called.

    Attributes:
        name: Tool name.
        arguments: JSON text as the model wrote it, possibly a fragment while streaming.
    """

    name: str = ""
    arguments: str = ""


class ToolCall(StrictModel):
    """A model's request to call a tool.

    Attributes:
        id: Pairs the call with its result.
        type: Kind of tool, so far only functions.
        function: What to call.
    """

    id: str = Field(max_length=255)
    type: Literal["function"] = "function"
    function: FunctionCall


def _content_kind(value: object) -> Literal["text", "<parts>"] | None:
    if isinstance(value, str):
        return "text"
    return "<parts>" if isinstance(value, list) else None


MessageContent: TypeAlias = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ContentElement], Tag("<parts>")],
    # Telling text from parts ourselves is faster than a union that tries both, and leaves one error, not two.
    Discriminator(
        _content_kind,
        custom_error_type="message_content",
        custom_error_message="Input should be text or a list of content elements",
    ),
]
"""Text, or a list of parts."""


class Message(StrictModel):
    """A complete message.

    Attributes:
        role: Who speaks.
        content: Text, parts, or null for a message of tool calls only.
        tool_calls: Calls the speaker wants made.
        tool_call_id: For role `tool`: the call that this answers.
        artifact_refs: Artifacts that belong to the message.
    """

    role: MessageRole
    content: MessageContent | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = Field(default=None, max_length=255)
    artifact_refs: list[ArtifactRef] = Field(default_factory=list)


class MessageChunk(StrictModel):
    """A piece of a message on its way.

    Attributes:
        role: Who speaks.
        content: Text or parts; what to do with them says `mode`.
        mode: `append` adds to what came before, `replace` puts a cumulative snapshot in its place (D-26).
        message_index: Which message of the run this belongs to, from 0 (D-55).
        is_final: No further chunk of this message follows.
        msg_sequence: Number of the chunk within its message, as the runner counts.
        finish_reason: Why the model stopped, on the last chunk.
        tool_calls: Tool calls, or fragments of them.
        tool_call_id: For role `tool`: the call that this answers.
        artifact_refs: Artifacts that belong to the message.
    """

    role: MessageRole = "assistant"
    content: MessageContent | None = None
    mode: ChunkMode = "append"
    message_index: Count = 0
    is_final: bool = False
    msg_sequence: Count | None = None
    finish_reason: str | None = Field(default=None, max_length=100)
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = Field(default=None, max_length=255)
    artifact_refs: list[ArtifactRef] = Field(default_factory=list)


class Usage(LenientModel):
    """Tokens as a provider counted them; unknown is null, never 0 (D-32, PROTOCOL 9.1).

    Attributes:
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        total_tokens: Sum; computed when it is missing or 0 and the other two are known.
        prompt_tokens_details: The provider's breakdown, kept as sent; likewise the next three.
        completion_tokens_details: See above.
        input_token_details: See above.
        output_token_details: See above.
        cache_creation_input_tokens: Tokens written to the provider's cache.
        cache_read_input_tokens: Tokens read from it.
    """

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    total_tokens: Count | None = None
    prompt_tokens_details: JsonObject | None = None
    completion_tokens_details: JsonObject | None = None
    input_token_details: JsonObject | None = None
    output_token_details: JsonObject | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None

    @model_validator(mode="after")
    def _complete_total(self) -> Self:
        if not self.total_tokens and self.prompt_tokens is not None and self.completion_tokens is not None:
            # Frozen models refuse assignment, but this is still part of making one.
            object.__setattr__(self, "total_tokens", _add(self.prompt_tokens, self.completion_tokens))
            self.model_fields_set.add("total_tokens")
        return self

    def merged(self, other: "Usage") -> "Usage":
        """Add two counts field by field; a field that only one of them knows keeps that value."""
        return Usage(
            prompt_tokens=_add(self.prompt_tokens, other.prompt_tokens),
            completion_tokens=_add(self.completion_tokens, other.completion_tokens),
            total_tokens=_add(self.total_tokens, other.total_tokens),
            prompt_tokens_details=_add_details(self.prompt_tokens_details, other.prompt_tokens_details),
            completion_tokens_details=_add_details(self.completion_tokens_details, other.completion_tokens_details),
            input_token_details=_add_details(self.input_token_details, other.input_token_details),
            output_token_details=_add_details(self.output_token_details, other.output_token_details),
            cache_creation_input_tokens=_add(self.cache_creation_input_tokens, other.cache_creation_input_tokens),
            cache_read_input_tokens=_add(self.cache_read_input_tokens, other.cache_read_input_tokens),
        )

    @classmethod
    def sum(cls, parts: Iterable["Usage"]) -> "Usage":
        """Add any number of counts; of none, everything is unknown."""
        total = cls()
        for part in parts:
            total = total.merged(part)
        return total


def _add(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    # No run counts that far; a provider that reports nonsense must not break the sum.
    return min(one + other, MAX_INTEGER)


def _add_details(one: JsonObject | None, other: JsonObject | None) -> JsonObject | None:
    """Add token breakdowns key by key; of values that are no whole numbers the later one stays."""
    if one is None or other is None:
        return other if one is None else one
    return {key: _add_detail(one.get(key), other.get(key)) for key in one | other}


def _add_detail(one: JsonValue, other: JsonValue) -> JsonValue:
    if isinstance(one, dict) and isinstance(other, dict):
        return _add_details(one, other)
    if type(one) is int and type(other) is int:
        return max(min(one + other, MAX_INTEGER), MIN_INTEGER)
    return one if other is None else other
