"""Documents that the API takes and gives, where the protocol has none of its own."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator, model_validator

from host_api.authorization import Authorization, RevocationKind
from runhost.protocol import (
    ActorContext,
    AgentConfig,
    AgentInput,
    AgentRunnerDescriptor,
    ArtifactMetadata,
    DeliveryContext,
    EventType,
    Identifier,
    JsonObject,
    StrictModel,
    SubjectContext,
    Timestamp,
    TranscriptItem,
    UnknownFields,
)

_AS_POSTED = UnknownFields("forbid")


class RunRequest(StrictModel):
    """A run to be created explicitly.

    Attributes:
        agent_id: The agent to run, in its current version.
        event_type: What the run is told has happened.
        input: Main input.
        conversation_id: Scope, like the next two.
        thread_id: See above.
        bot_id: See above.
        actor: Who caused it.
        subject: What it is about.
        delivery: Where answers can go; by default only to who reads the run.
        data: Small structured payload of the event, at most 64 KiB of JSON.
        metadata: Kept with the run, at most 64 KiB of JSON.
    """

    agent_id: Identifier
    event_type: EventType = "api.invoked"
    input: Annotated[AgentInput, _AS_POSTED] = AgentInput()
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    bot_id: Identifier | None = None
    actor: Annotated[ActorContext, _AS_POSTED] | None = None
    subject: Annotated[SubjectContext, _AS_POSTED] | None = None
    delivery: Annotated[DeliveryContext, _AS_POSTED] = DeliveryContext(surface="api")
    data: JsonObject = Field(default_factory=dict)
    metadata: JsonObject = Field(default_factory=dict)


class CancelRequest(StrictModel):
    """Why a run is to end."""

    reason: str | None = Field(default=None, max_length=1_000)


class RevokeRequest(StrictModel):
    """What a run is to lose.

    Attributes:
        kind: What kind of thing; `run` takes everything that the run may reach.
        id: Which one, as `ctx.resources` names it; needed, and for `run` left out.
        reason: Why; kept with the run and in its ledger.
    """

    kind: RevocationKind
    id: Identifier | None = Field(default=None, validate_default=True)
    reason: str | None = Field(default=None, max_length=1_000)

    @field_validator("id")
    @classmethod
    def _fits_the_kind(cls, value: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("kind")
        if kind == "run" and value is not None:
            raise ValueError("leave it out for the kind run, which takes everything")
        if kind not in {"run", None} and value is None:
            raise ValueError(f"name the {kind} to take back; GET .../authorization lists what the run may reach")
        return value


class RevocationRead(BaseModel):
    """What was taken back from a run, and when. ``id`` is null for the kind `run`."""

    kind: RevocationKind
    id: str | None
    reason: str | None
    revoked_at: datetime


class AuthorizationRead(BaseModel):
    """What a run may reach. There is no secret in it.

    Attributes:
        snapshot: What it was granted when it was prepared, frozen; null before that.
        revocations: What was taken back since, oldest first.
        effective: What is left: what every call of the run is checked against.
    """

    run_id: str
    snapshot: Authorization | None
    revocations: list[RevocationRead]
    effective: Authorization | None


class AccessRead(BaseModel):
    """One call of a run to the host API.

    Attributes:
        action: The method.
        resource: What it reached for, such as `model:gpt`.
        scope: Operation, state scope, storage area or conversation.
        result: `ok`, `cancelled`, or the code of the refusal.
        duration_ms: From its arrival to its answer.
    """

    run_id: str
    attempt: int | None
    runner_id: str | None
    action: str
    resource: str | None
    scope: str | None
    result: str
    duration_ms: float
    created_at: datetime


class EventReceipt(BaseModel):
    """What became of a posted event.

    Attributes:
        event_id: The event.
        disposition: `run_started`; `ignored`, then `reason` and `detail` say why and what to do; or
            `duplicate`: the same event was posted before, and `original_disposition` says what became of it.
        run_id: The run that it led to.
    """

    event_id: str
    disposition: Literal["run_started", "ignored", "duplicate"]
    original_disposition: Literal["run_started", "ignored"] | None = None
    run_id: str | None = None
    reason: Literal["no_binding"] | None = None
    detail: str | None = None


class EventRead(BaseModel):
    """A row of the event log.

    Attributes:
        seq: Position in the log.
        event_time: When it happened; `created_at` is when it was logged.
        input_summary: What was written, at most 1,000 characters.
        disposition: What became of a posted event; null for rows that the host wrote itself.
        run_id: The run that it led to, or that caused it; then `sequence` is the ledger row.
    """

    seq: int
    event_id: str
    event_type: str
    event_time: datetime | None
    source: str
    source_event_type: str | None
    bot_id: str | None
    workspace_id: str
    conversation_id: str | None
    thread_id: str | None
    actor_type: str | None
    actor_id: str | None
    actor_name: str | None
    subject_type: str | None
    subject_id: str | None
    input_summary: str | None
    disposition: str | None
    run_id: str | None
    sequence: int | None
    runner_id: str | None
    metadata: JsonObject
    created_at: datetime


class TranscriptItemRead(TranscriptItem):
    """An item of the transcript; times are RFC 3339 here."""

    created_at: Timestamp | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class ArtifactRead(ArtifactMetadata):
    """What is known of an artifact; times are RFC 3339 here."""

    created_at: Timestamp | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    expires_at: Timestamp | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class AgentRead(BaseModel):
    """An agent in its current version."""

    agent_id: str
    version: int
    config: AgentConfig
    created_at: datetime


class BindingScopeRequest(StrictModel):
    """Where a binding applies: in the whole workspace, or for one bot, named by `scope_id`."""

    scope_type: Literal["workspace", "bot"] = "workspace"
    scope_id: Identifier | None = None

    @model_validator(mode="after")
    def _has_fitting_id(self) -> Self:
        if (self.scope_type == "bot") != (self.scope_id is not None):
            raise ValueError("scope bot needs scope_id, the bot's id; scope workspace takes none")
        return self


class BindingRequest(StrictModel):
    """Which events lead to an agent.

    Attributes:
        agent_id: The agent.
        scope: Where the binding applies; a bot's binding wins over the workspace's.
        event_types: The events.
        priority: Decides inside a scope, higher first; two equal ones leave no choice (D-41).
        enabled: Whether it applies at all.
    """

    agent_id: Identifier
    scope: BindingScopeRequest = BindingScopeRequest()
    event_types: list[EventType] = Field(default=["message.received"], min_length=1, max_length=100)
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    enabled: bool = True


class BindingRead(BaseModel):
    """A binding."""

    binding_id: str
    agent_id: str
    scope: BindingScopeRequest
    event_types: list[str]
    priority: int
    enabled: bool
    updated_at: datetime


class RunnerRead(BaseModel):
    """A runner that some worker offers.

    Attributes:
        task_queue: Where the workers that execute it take their work.
        is_stale: Its source could not be read lately; this is what it said last (D-19).
    """

    descriptor: AgentRunnerDescriptor
    task_queue: str
    is_stale: bool
    last_seen_at: datetime
