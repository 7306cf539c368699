"""What the `data` of each result type holds (PROTOCOL 7.2)."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from pydantic import Field

from runhost.protocol.content import Message, MessageChunk
from runhost.protocol.identifiers import Code, Digest, Identifier, Kind, MediaType, StateScope
from runhost.protocol.json import Count, JsonObject, JsonValue, LenientModel, StrictModel


class ResultType(StrEnum):
    """Result types that the host acts on; others are stored and ignored (P-V3, D-4)."""

    MESSAGE_DELTA = "message.delta"
    MESSAGE_COMPLETED = "message.completed"
    TOOL_CALL_STARTED = "tool.call.started"
    TOOL_CALL_COMPLETED = "tool.call.completed"
    ARTIFACT_CREATED = "artifact.created"
    STATE_UPDATED = "state.updated"
    ACTION_REQUESTED = "action.requested"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"


class MessageDeltaData(StrictModel):
    """`message.delta`: a piece of a message; natively an increment (D-26)."""

    chunk: MessageChunk


class MessageCompletedData(StrictModel):
    """`message.completed`: a whole message, delivered and written to the transcript."""

    message: Message


class ToolCallStartedData(LenientModel):
    """`tool.call.started`: what it usually holds; the host accepts any object (P-V2)."""

    tool_call_id: Identifier
    tool_name: Identifier
    parameters: JsonObject = Field(default_factory=dict)


class ToolCallCompletedData(LenientModel):
    """`tool.call.completed`: what it usually holds; the host accepts any object (P-V2)."""

    tool_call_id: Identifier
    tool_name: Identifier
    result: JsonObject | None = None
    error: str | None = None


class ArtifactCreatedData(StrictModel):
    """`artifact.created`: an artifact to register.

    Attributes:
        artifact_type: `image`, `file`, `voice`, `tool_result`, ...
        artifact_id: Id to register it under; the host makes one if it is missing.
        mime_type: Media type.
        name: File name for display.
        size_bytes: Size of the content.
        sha256: Hex digest of the content.
        metadata: Anything else, public.
        content_base64: The content itself, at most 1 MiB decoded; see `decode_content`.
    """

    artifact_type: Kind
    artifact_id: Identifier | None = None
    mime_type: MediaType | None = None
    name: str | None = None
    size_bytes: Count | None = None
    sha256: Digest | None = None
    metadata: JsonObject = Field(default_factory=dict)
    content_base64: str | None = None


class StateUpdatedData(StrictModel):
    """`state.updated`: a value to store.

    Attributes:
        scope: Whose state.
        key: At most 255 characters.
        value: JSON, at most 256 KiB of UTF-8; the size is checked where it is written (P-V6).
    """

    scope: StateScope
    key: Identifier
    value: JsonValue


class ActionRequestedData(StrictModel):
    """`action.requested`: something the runner would like done on the platform (EVENTS 6).

    Attributes:
        action: Its name, such as `message.edit`.
        target: What to do it to.
        payload: What to do it with.
    """

    action: Identifier
    target: JsonObject | None = None
    payload: JsonObject | None = None


class RunCompletedData(StrictModel):
    """`run.completed`: the end; a message is delivered unless it was just completed (D-25).

    Attributes:
        finish_reason: Why the runner stopped.
        message: Last message; the key must be absent when there is none (P-V11).
    """

    finish_reason: str = Field(max_length=100)
    message: Message | None = None


class RunFailedData(StrictModel):
    """`run.failed`: the end, without success.

    Attributes:
        code: A `RunFailureCode` or one of the runner's own.
        error: What went wrong, for people.
        retryable: Trying the whole run again may help (P-S8).
    """

    code: Code
    error: str
    retryable: bool = False


STRICT_PAYLOADS: Final[Mapping[ResultType, type[StrictModel]]] = MappingProxyType(
    {
        ResultType.MESSAGE_DELTA: MessageDeltaData,
        ResultType.MESSAGE_COMPLETED: MessageCompletedData,
        ResultType.ARTIFACT_CREATED: ArtifactCreatedData,
        ResultType.STATE_UPDATED: StateUpdatedData,
        ResultType.ACTION_REQUESTED: ActionRequestedData,
        ResultType.RUN_COMPLETED: RunCompletedData,
        ResultType.RUN_FAILED: RunFailedData,
    }
)
"""Model of `data` for every type that is checked strictly (P-V1)."""

OUTPUT_TYPES: Final = frozenset(
    {
        ResultType.MESSAGE_DELTA,
        ResultType.MESSAGE_COMPLETED,
        ResultType.ARTIFACT_CREATED,
        ResultType.STATE_UPDATED,
        ResultType.ACTION_REQUESTED,
    }
)
"""Results that make a run more than empty; so does a `run.completed` with a message (D-24)."""

OUTPUT_REQUIRED_EVENT_TYPES: Final = frozenset({"message.received"})
"""Events whose runs fail with `runner.no_output` when they complete empty (D-24)."""
