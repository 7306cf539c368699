"""Events on their way in: the envelope as it is posted (HOST 2.1, D-6)."""

import json
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from runhost.protocol.context import ActorContext, AgentInput, DeliveryContext, RawEventRef, SubjectContext
from runhost.protocol.identifiers import EventSource, EventType, Identifier
from runhost.protocol.json import EpochSeconds, JsonObject, StrictModel, UnknownFields

__all__ = ["MAX_EVENT_DATA_BYTES", "AgentEventEnvelope", "RawEventRef"]

MAX_EVENT_DATA_BYTES: Final = 64 * 1024

_AS_POSTED: Final = UnknownFields("forbid")


def _bounded(value: JsonObject) -> JsonObject:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_EVENT_DATA_BYTES:
        raise PydanticCustomError(
            "json_too_long",
            "Object exceeds {limit} bytes of JSON: send large payloads as artifacts",
            {"limit": MAX_EVENT_DATA_BYTES},
        )
    return value


_SmallObject: TypeAlias = Annotated[JsonObject, AfterValidator(_bounded)]


class AgentEventEnvelope(StrictModel):
    """Something that happened, as an entry reports it.

    Unknown fields are refused here and in every part.

    Attributes:
        event_id: Unique in the workspace; the same id with the same content is a redelivery (D-21).
        event_type: Stable name, at most 100 characters.
        event_time: When it happened.
        source: Where it came from.
        source_event_type: The platform's own name for it.
        bot_id: Scope, like the next three.
        workspace_id: See above.
        conversation_id: See above.
        thread_id: See above.
        actor: Who caused it.
        subject: What it is about.
        input: Main input.
        delivery: Where answers can go.
        raw_ref: The raw payload, if it was stored.
        data: Small structured payload, at most 64 KiB of JSON.
        metadata: Platform names and raw notes, at most 64 KiB of JSON.
    """

    event_id: Identifier
    event_type: EventType
    event_time: EpochSeconds | None = None
    source: EventSource
    source_event_type: Identifier | None = None
    bot_id: Identifier | None = None
    workspace_id: Identifier | None = None
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    actor: Annotated[ActorContext, _AS_POSTED] | None = None
    subject: Annotated[SubjectContext, _AS_POSTED] | None = None
    input: Annotated[AgentInput, _AS_POSTED]
    delivery: Annotated[DeliveryContext, _AS_POSTED]
    raw_ref: Annotated[RawEventRef, _AS_POSTED] | None = None
    data: _SmallObject = Field(default_factory=dict)
    metadata: _SmallObject = Field(default_factory=dict)
