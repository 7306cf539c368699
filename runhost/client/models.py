"""Documents of the HTTP API that the protocol does not have. What is read drops what a newer host adds."""

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

from runhost.protocol import (
    ActorContext,
    AgentConfig,
    AgentInput,
    AgentRunnerDescriptor,
    DeliveryContext,
    EventType,
    Identifier,
    JsonObject,
    LenientModel,
    RunStatus,
    StrictModel,
    SubjectContext,
    Timestamp,
    TranscriptItem,
)

Item = TypeVar("Item")


class Page(LenientModel, Generic[Item]):
    """A page of a list; hand `next_cursor` in for the next one, with the same filters."""

    items: list[Item]
    next_cursor: str | None = None
    has_more: bool = False


class EventReceipt(LenientModel):
    """What became of a posted event.

    Attributes:
        event_id: The event.
        disposition: `run_started`; `ignored`, then `detail` says why and what to do; or `duplicate`: the same
            event was posted before, and `original_disposition` says what became of it.
        original_disposition: See above.
        run_id: The run that it led to.
        reason: Why it was ignored, as a code.
        detail: Why it was ignored, for people.
    """

    event_id: str
    disposition: str
    original_disposition: str | None = None
    run_id: str | None = None
    reason: str | None = None
    detail: str | None = None


class RunRequest(StrictModel):
    """A run to be created explicitly, without an event from outside.

    Attributes:
        agent_id: The agent to run, in its current version.
        input: Main input.
        event_type: What the run is told has happened.
        conversation_id: Scope, like the next two.
        thread_id: See above.
        bot_id: See above.
        actor: Who caused it.
        subject: What it is about.
        delivery: Where answers can go; by default only to who reads the run.
        data: Small structured payload, at most 64 KiB of JSON.
        metadata: Kept with the run, at most 64 KiB of JSON.
    """

    agent_id: Identifier
    input: AgentInput = AgentInput()
    event_type: EventType = "api.invoked"
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    bot_id: Identifier | None = None
    actor: ActorContext | None = None
    subject: SubjectContext | None = None
    delivery: DeliveryContext | None = None
    data: JsonObject = Field(default_factory=dict)
    metadata: JsonObject = Field(default_factory=dict)


class RunFilter(StrictModel):
    """Which runs to list; what is left out does not matter."""

    status: Annotated[RunStatus, Field(strict=False)] | None = None
    agent_id: Identifier | None = None
    runner_id: Identifier | None = None
    conversation_id: Identifier | None = None
    bot_id: Identifier | None = None
    created_after: Timestamp | None = None
    created_before: Timestamp | None = None


class RunnerRead(LenientModel):
    """A runner that some worker offers.

    Attributes:
        descriptor: What it is, and what its configuration form asks for.
        task_queue: Where its workers take their work.
        is_stale: Its source could not be read lately; this is what it said last (D-19).
        last_seen_at: When a worker last offered it.
    """

    descriptor: AgentRunnerDescriptor
    task_queue: str
    is_stale: bool = False
    last_seen_at: Timestamp


class AgentRead(LenientModel):
    """An agent in its current version."""

    agent_id: str
    version: int
    config: AgentConfig
    created_at: Timestamp


class BindingScope(LenientModel):
    """Where a binding applies: in the whole workspace, or for the bot that `scope_id` names."""

    scope_type: Literal["workspace", "bot"] = "workspace"
    scope_id: Identifier | None = None


class BindingRequest(StrictModel):
    """Which events lead to an agent.

    Attributes:
        agent_id: The agent.
        scope: Where the binding applies; a bot's binding wins over the workspace's.
        event_types: The events, at most 100.
        priority: Decides inside a scope, higher first; two equal ones leave no choice (D-41).
        enabled: Whether it applies at all.
    """

    agent_id: Identifier
    scope: BindingScope = BindingScope()
    event_types: list[EventType] = Field(default=["message.received"], min_length=1, max_length=100)
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    enabled: bool = True


class BindingRead(LenientModel):
    """A binding as the host keeps it."""

    binding_id: str
    agent_id: str
    scope: BindingScope
    event_types: list[str]
    priority: int
    enabled: bool
    updated_at: Timestamp


class TranscriptItemRead(TranscriptItem):
    """An item of a conversation; its time is RFC 3339 here (API.md)."""

    model_config = ConfigDict(extra="ignore")

    created_at: Timestamp | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
