"""What one result causes besides its ledger row (HOST 9.2, D-25, D-29). Pure; the journal commits it."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, cast

from activities.oversize import move_out
from runhost.protocol import (
    MAX_INLINE_TEXT_BYTES,
    MAX_RESULT_BYTES,
    MAX_STATE_VALUE_BYTES,
    AgentRunResult,
    ArtifactCreatedData,
    ArtifactRef,
    InvalidPayload,
    JsonObject,
    JsonValue,
    Message,
    MessageCompletedData,
    ResultType,
    RunCompletedData,
    StateUpdatedData,
    StrictModel,
    decode_content,
)
from stores.identifiers import new_uuid
from stores.jsonb import dumps, encoded_size
from stores.redaction import SUMMARY_CHARACTERS, TRANSCRIPT_CHARACTERS, cut, redact_message, text_of
from stores.state import storage_key

# Text of so many characters is within every limit, whatever its characters are.
MAX_PLAIN_CHARACTERS = MAX_INLINE_TEXT_BYTES // 4
_LOGGED_TYPES = frozenset({ResultType.TOOL_CALL_STARTED, ResultType.TOOL_CALL_COMPLETED, ResultType.ARTIFACT_CREATED})


@dataclass(frozen=True)
class ResultScope:
    """What a run may write: its state scopes by name, and the prefix of artifact ids that the host gives."""

    scope_keys: dict[str, str]
    binding_identity: str
    id_prefix: str


@dataclass(slots=True)
class Entry:
    """One result, ready for a batch. ``text`` is its data as JSON; the lists are rows of projections."""

    type: str
    text: str
    references: list[JsonObject] = field(default_factory=list[JsonObject])
    artifacts: list[JsonObject] = field(default_factory=list[JsonObject])
    blobs: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    state: list[JsonObject] = field(default_factory=list[JsonObject])
    events: list[JsonObject] = field(default_factory=list[JsonObject])
    message: Message | None = None


def project(result: AgentRunResult, payload: StrictModel | None, scope: ResultScope, number: int) -> Entry:
    """Return the row of a valid result and what it causes.

    Args:
        result: What the runner yielded.
        payload: Its typed data, None for loose and unknown types, which cause nothing but a log row.
        scope: What the run may write.
        number: The result's number within the attempt; ids made from it are the same in a repetition.

    Raises:
        InvalidPayload: The result is too large, or a state update that is not allowed: the run goes on.
        MalformedResult: An artifact whose content is no base64 or too large: the run fails (P-V7).
    """
    data = result.data
    entry = Entry(result.type, "")
    if isinstance(payload, ArtifactCreatedData):
        data = _register_artifact(entry, payload, f"{scope.id_prefix}-{number}")
    elif isinstance(payload, StateUpdatedData):
        entry.state.append(_state_row(result, payload, scope))
    elif isinstance(payload, MessageCompletedData | RunCompletedData):
        entry.message = payload.message
    entry.text = dumps(data)
    if len(entry.text) > MAX_PLAIN_CHARACTERS:
        _bound(entry, result, data, f"{scope.id_prefix}-{number}-content")
    if result.type in _LOGGED_TYPES:
        entry.events.append({"event_type": result.type, "input_summary": None, "metadata": _log_facts(data)})
    return entry


def transcript_item(message: Message, references: list[JsonObject], metadata: JsonObject) -> JsonObject:
    """Return the transcript row of what the agent said."""
    own = [ref.model_dump(mode="json", exclude_none=True) for ref in message.artifact_refs]
    unique = {cast("str", ref["artifact_id"]): ref for ref in [*references, *own]}
    return {
        "transcript_id": str(new_uuid()),
        "role": message.role,
        "item_type": "tool_call" if message.tool_calls and not text_of(message) else "message",
        "content": cut(text_of(message), TRANSCRIPT_CHARACTERS),
        "content_json": redact_message(message),
        "artifact_refs": list(unique.values()),
        "metadata": metadata,
    }


def is_blank(message: Message) -> bool:
    """Say whether a message shows nothing: no text, no parts, no tool calls, no artifacts (LA-08)."""
    shows_content = bool(message.content.strip()) if isinstance(message.content, str) else bool(message.content)
    return not (shows_content or message.tool_calls or message.artifact_refs)


def _register_artifact(entry: Entry, payload: ArtifactCreatedData, made_id: str) -> JsonObject:
    content = decode_content(payload)
    sha256 = hashlib.sha256(content).hexdigest() if content is not None else payload.sha256
    reference = ArtifactRef(
        artifact_id=payload.artifact_id or made_id,
        artifact_type=payload.artifact_type,
        mime_type=payload.mime_type,
        name=payload.name,
        size_bytes=len(content) if content is not None else payload.size_bytes,
        sha256=sha256,
    ).model_dump(mode="json", exclude_none=True)
    entry.references.append(reference)
    entry.artifacts.append(
        {
            **reference,
            "source": "runner",
            "storage_type": "metadata_only" if content is None else "blob",
            "metadata": payload.metadata,
        }
    )
    if content is not None and sha256 is not None:
        entry.blobs.append((sha256, content))
    # The content has moved to the artifact: never part of the row (L-E4, PM-13).
    return {**reference, "metadata": payload.metadata}


def _state_row(result: AgentRunResult, payload: StateUpdatedData, scope: ResultScope) -> JsonObject:
    scope_key = scope.scope_keys.get(payload.scope)
    if scope_key is None:
        raise InvalidPayload(
            f"data.scope: state scope {payload.scope!r} is off for this agent, or the event has no identity for it",
            result,
        )
    if encoded_size(payload.value) > MAX_STATE_VALUE_BYTES:
        raise InvalidPayload(f"data.value: exceeds {MAX_STATE_VALUE_BYTES} bytes of JSON", result)
    return {
        "scope_key": scope_key,
        "state_key": storage_key(payload.key),
        "scope": payload.scope,
        "binding_identity": scope.binding_identity,
        "value": payload.value,
    }


def _bound(entry: Entry, result: AgentRunResult, data: JsonObject, artifact_id: str) -> None:
    size = len(entry.text.encode())
    if size > MAX_RESULT_BYTES:
        raise InvalidPayload(f"data: exceeds {MAX_RESULT_BYTES} bytes of JSON; send large content as artifacts", result)
    if size <= MAX_INLINE_TEXT_BYTES:
        return
    moved = move_out(result.type, data, artifact_id)
    reference = moved.reference.model_dump(mode="json", exclude_none=True)
    entry.text = dumps(moved.data)
    entry.references.append(reference)
    entry.artifacts.append({**reference, "source": "runner", "storage_type": "blob", "metadata": {}})
    entry.blobs.append((reference["sha256"], moved.content))
    if entry.message is not None:
        holder = cast("JsonValue", moved.data["message"])
        entry.message = Message.model_validate(holder)


def _log_facts(data: JsonObject) -> JsonObject:
    """Return what the event log says of a tool call or an artifact: names and ids, no contents."""
    facts: dict[str, Any] = {}
    for key in ("tool_call_id", "tool_name", "artifact_id", "artifact_type", "mime_type", "size_bytes"):
        value = data.get(key)
        if isinstance(value, str | int):
            facts[key] = cut(value, SUMMARY_CHARACTERS) if isinstance(value, str) else value
    if data.get("error"):
        facts["failed"] = True
    return facts
