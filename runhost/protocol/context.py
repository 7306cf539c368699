"""What a runner is given: the run context and its parts (PROTOCOL 4 and 5).

A runner reads these leniently, so that a newer host can add fields (P-V9). The same parts as posted to the
host are read strictly, see `runhost.protocol.events`.
"""

from typing import Annotated, Literal

from pydantic import Field

from runhost.protocol.content import ArtifactRef, ContentElement
from runhost.protocol.identifiers import Digest, EventSource, Identifier, Kind, MediaType
from runhost.protocol.json import Count, EpochSeconds, JsonObject, LenientModel, UnknownFields
from runhost.protocol.resources import AgentResources


class AgentTrigger(LenientModel):
    """Why the run started (PROTOCOL 5.1).

    Attributes:
        type: The event type, or something coarser.
        source: Where the event came from.
        timestamp: Time of the event, else of the start.
    """

    type: str
    source: EventSource
    timestamp: EpochSeconds | None = None


class RawEventRef(LenientModel):
    """Reference to a stored raw payload.

    Attributes:
        ref_id: Opaque name of the payload; an artifact id when the host stored it.
        mime_type: Media type.
        size_bytes: Size of the payload.
        sha256: Hex digest of the payload.
        expires_at: When it stops being readable.
    """

    ref_id: Identifier
    mime_type: MediaType | None = None
    size_bytes: Count | None = None
    sha256: Digest | None = None
    expires_at: EpochSeconds | None = None


class AgentEventContext(LenientModel):
    """The event itself (PROTOCOL 5.2).

    Attributes:
        event_id: Unique in the workspace.
        event_type: Stable name, never a platform's.
        event_time: When it happened.
        source: Where it came from.
        source_event_type: The platform's own name for it.
        raw_ref: The raw payload, if it was stored.
        data: Small structured payload.
    """

    event_id: Identifier
    event_type: str
    event_time: EpochSeconds | None = None
    source: str
    source_event_type: str | None = None
    raw_ref: RawEventRef | None = None
    data: JsonObject = Field(default_factory=dict)


class ConversationContext(LenientModel):
    """Where the event took place (PROTOCOL 5.3); absent when it has no conversation."""

    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    launcher_type: str | None = None
    launcher_id: str | None = None
    sender_id: str | None = None
    bot_id: Identifier | None = None
    workspace_id: Identifier | None = None
    session_id: str | None = None


class ActorContext(LenientModel):
    """Who caused the event (PROTOCOL 5.4).

    Attributes:
        actor_type: `user`, `system`, `runner`, ...
        actor_id: Id on the platform.
        actor_name: Display name.
        metadata: Not copied into the run context.
    """

    actor_type: Kind
    actor_id: Identifier | None = None
    actor_name: str | None = Field(default=None, max_length=255)
    metadata: JsonObject = Field(default_factory=dict)


class SubjectContext(LenientModel):
    """What the event is about (PROTOCOL 5.5).

    Attributes:
        subject_type: `message`, `tool_call`, `artifact`, `schedule`, ...
        subject_id: Its id.
        data: Small structured data.
    """

    subject_type: Kind
    subject_id: Identifier | None = None
    data: JsonObject = Field(default_factory=dict)


class AgentInput(LenientModel):
    """Main input of the event, without any history (PROTOCOL 5.6).

    Attributes:
        text: Plain text.
        contents: Structured content, images and files included.
        attachments: Artifacts of this event.
    """

    text: str | None = None
    contents: list[ContentElement] = Field(default_factory=list, max_length=1_000)
    attachments: list[ArtifactRef] = Field(default_factory=list, max_length=1_000)


class DeliveryContext(LenientModel):
    """Where and how answers can go (PROTOCOL 5.7).

    Attributes:
        surface: Name of the output surface.
        reply_target: Where a reply goes; system events may have none.
        supports_streaming: Takes partial messages.
        supports_edit: Can change a message that was sent.
        supports_reaction: Has reactions.
        max_message_size: Limit of one message, in the surface's own unit.
        platform_capabilities: Extras of the platform.
    """

    surface: Identifier
    reply_target: JsonObject | None = None
    supports_streaming: bool = False
    supports_edit: bool = False
    supports_reaction: bool = False
    max_message_size: Count | None = None
    platform_capabilities: JsonObject = Field(default_factory=dict)


class InlineContextPolicy(LenientModel):
    """What was inlined into the context; this host always inlines the current event only (PROTOCOL 5.8)."""

    mode: Literal["none", "current_event", "recent_tail", "summary_tail"]
    delivered_count: Count = 0
    source_total_count: Count | None = None
    messages_complete: bool = False
    reason: str | None = None


class ContextAPICapabilities(LenientModel):
    """Which pull APIs this run may use (PROTOCOL 5.8)."""

    prompt_get: bool = False
    history_page: bool = False
    history_search: bool = False
    event_get: bool = False
    event_page: bool = False
    artifact_metadata: bool = False
    artifact_read: bool = False
    state: bool = False
    storage: bool = False
    steering_pull: bool = False


class ContextAccess(LenientModel):
    """Handles for more context (PROTOCOL 5.8).

    Attributes:
        conversation_id: Conversation of the event.
        thread_id: Thread of the event.
        latest_cursor: Newest transcript cursor before this event; opaque (D-46).
        event_seq: Position in the event log.
        transcript_seq: Position in the transcript.
        has_history_before: There is history before this event.
        inline_policy: What was inlined.
        available_apis: What may be pulled.
    """

    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    latest_cursor: str | None = None
    event_seq: Count | None = None
    transcript_seq: Count | None = None
    has_history_before: bool = False
    inline_policy: InlineContextPolicy
    available_apis: ContextAPICapabilities


class AgentRuntimeContext(LenientModel):
    """Facts about the host (PROTOCOL 5.9).

    Attributes:
        langbot_version: Version of the host, under its protocol name (D-2).
        trace_id: Equal to the run id.
        deadline_at: Epoch seconds after which the run is timed out; null means never.
        metadata: `bot_id`, `workspace_id`, `streaming_supported`, `model_context_window_tokens`.
    """

    langbot_version: str | None = None
    trace_id: str | None = None
    deadline_at: float | None = Field(default=None, ge=0)
    metadata: JsonObject = Field(default_factory=dict)


class AgentRunState(LenientModel):
    """Snapshot of host-owned state; a scope that is off or has no identity is empty (PROTOCOL 5.10)."""

    conversation: JsonObject = Field(default_factory=dict)
    actor: JsonObject = Field(default_factory=dict)
    subject: JsonObject = Field(default_factory=dict)
    runner: JsonObject = Field(default_factory=dict)


class AdapterContext(LenientModel):
    """One-off values of the entry; new runners do not depend on it (PROTOCOL 5.11)."""

    extra: JsonObject = Field(default_factory=dict)


class AgentRunContext(LenientModel):
    """Everything a runner is given for one run (PROTOCOL 5).

    Attributes:
        run_id: The run.
        trigger: Why it started.
        event: The event.
        conversation: Where it took place.
        actor: Who caused it.
        subject: What it is about.
        input: Main input.
        delivery: Where answers can go.
        resources: What the run may use.
        context: Handles for more.
        state: Host-owned state.
        runtime: Facts about the host.
        config: The agent's runner configuration.
        adapter: One-off values of the entry.
        metadata: For diagnosis.
    """

    run_id: Identifier
    trigger: AgentTrigger
    event: AgentEventContext
    conversation: ConversationContext | None = None
    actor: ActorContext | None = None
    subject: SubjectContext | None = None
    input: Annotated[AgentInput, UnknownFields("ignore")]
    delivery: DeliveryContext
    resources: AgentResources
    context: ContextAccess
    state: AgentRunState
    runtime: AgentRuntimeContext
    config: JsonObject = Field(default_factory=dict)
    adapter: AdapterContext | None = None
    metadata: JsonObject = Field(default_factory=dict)


class AgentRunRequest(LenientModel):
    """The `RUN_AGENT` call (PROTOCOL 4).

    Attributes:
        runner_id: Which runner.
        runner_name: Its name inside the plugin.
        context: What it is given.
    """

    runner_id: Identifier
    runner_name: Identifier
    context: AgentRunContext
