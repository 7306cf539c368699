"""Results too large for a ledger row: their text becomes an artifact and a reference (D-28, L-E4).

Nothing is cut without a trace: the row keeps the first 10,000 characters and the reference to all of it.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, cast

from runhost.protocol import EXCERPT_CHARACTERS, ArtifactRef, JsonObject, JsonValue, ResultType
from stores.jsonb import dumps

# Where the text of a result stands; anything not named here is kept whole as JSON.
_TEXT_FIELDS: dict[str, tuple[str, str]] = {
    ResultType.MESSAGE_DELTA: ("chunk", "content"),
    ResultType.MESSAGE_COMPLETED: ("message", "content"),
    ResultType.RUN_COMPLETED: ("message", "content"),
}
# What a reader needs to place a result even where its body has moved out.
_KEPT_FIELDS = ("tool_call_id", "tool_name", "code", "retryable", "finish_reason", "action")
_KEPT_CHARACTERS = 255


@dataclass(frozen=True)
class MovedOut:
    """The row's new data, and the artifact that holds what it held before."""

    data: JsonObject
    reference: ArtifactRef
    content: bytes


def move_out(type_: str, data: JsonObject, artifact_id: str) -> MovedOut:
    """Return ``data`` without its large text, and the artifact to store beside it."""
    where = _TEXT_FIELDS.get(type_)
    holder = data.get(where[0]) if where else None
    if where and isinstance(holder, dict) and isinstance(holder.get(where[1]), str):
        text = cast("str", holder[where[1]])
        reference, content = _artifact(artifact_id, text, "message", "text/plain; charset=utf-8")
        shortened: dict[str, Any] = {**holder, where[1]: text[:EXCERPT_CHARACTERS]}
        references = [*cast("list[Any]", holder.get("artifact_refs") or []), _dump(reference)]
        return MovedOut({**data, where[0]: {**shortened, "artifact_refs": references}}, reference, content)
    text = dumps(data)
    reference, content = _artifact(artifact_id, text, "result", "application/json")
    kept = {key: value for key in _KEPT_FIELDS if _is_small(value := data.get(key))}
    return MovedOut(
        {**kept, "excerpt": text[:EXCERPT_CHARACTERS], "artifact_ref": _dump(reference)}, reference, content
    )


def _artifact(artifact_id: str, text: str, kind: str, mime_type: str) -> tuple[ArtifactRef, bytes]:
    content = text.encode("utf-8", "surrogatepass")
    return (
        ArtifactRef(
            artifact_id=artifact_id,
            artifact_type=kind,
            mime_type=mime_type,
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        ),
        content,
    )


def _is_small(value: JsonValue) -> bool:
    if isinstance(value, str):
        return len(value) <= _KEPT_CHARACTERS
    return isinstance(value, bool | int | float)


def _dump(reference: ArtifactRef) -> dict[str, Any]:
    return reference.model_dump(mode="json", exclude_none=True)
