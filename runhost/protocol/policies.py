"""Managed configuration: agents, bindings, policies (HOST 2.2 to 2.4, D-10, D-11, D-40 to D-42).

These are stored, so they drop what a newer writer added. Where they are posted, annotate them with
`UnknownFields("forbid")`.
"""

from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from runhost.protocol.identifiers import EventType, Identifier, StateScope
from runhost.protocol.json import Count, JsonObject, JsonValue, LenientModel


def _default_event_types() -> list[EventType]:
    return ["message.received"]


def _default_state_scopes() -> list[StateScope]:
    return ["conversation", "actor"]


class ResourcePolicy(LenientModel):
    """Which resources an agent may use beyond what its config selects (D-10).

    Attributes:
        allowed_model_uuids: Models added to the selected ones; null adds nothing.
        allowed_tool_names: Likewise for tools.
        allowed_kb_uuids: Likewise for knowledge bases.
        allowed_skill_names: Skills that may be seen; null means all.
        denied_model_uuids: Models taken away; always wins, like the other three.
        denied_tool_names: Tools taken away.
        denied_kb_uuids: Knowledge bases taken away.
        denied_skill_names: Skills taken away.
        allow_plugin_storage: Plugin storage may be used.
        allow_workspace_storage: Workspace storage may be used.
        allow_history: History may be read (D-11).
        allow_events: Events may be read (D-11).
        allow_artifacts: Artifacts may be read (D-11).
    """

    allowed_model_uuids: list[Identifier] | None = None
    allowed_tool_names: list[Identifier] | None = None
    allowed_kb_uuids: list[Identifier] | None = None
    allowed_skill_names: list[Identifier] | None = None
    denied_model_uuids: list[Identifier] = Field(default_factory=list)
    denied_tool_names: list[Identifier] = Field(default_factory=list)
    denied_kb_uuids: list[Identifier] = Field(default_factory=list)
    denied_skill_names: list[Identifier] = Field(default_factory=list)
    allow_plugin_storage: bool = True
    allow_workspace_storage: bool = False
    allow_history: bool = True
    allow_events: bool = True
    allow_artifacts: bool = True


class StatePolicy(LenientModel):
    """Whether and in which scopes an agent has host-owned state."""

    enable_state: bool = True
    state_scopes: list[StateScope] = Field(default_factory=_default_state_scopes)


class DeliveryPolicy(LenientModel):
    """What may be delivered.

    Attributes:
        enable_streaming: Partial messages too, if the surface takes them (D-27).
        enable_reply: Anything at all.
        max_message_size: Limit of one message, in the surface's own unit.
    """

    enable_streaming: bool = True
    enable_reply: bool = True
    max_message_size: Count | None = None


class OnBusy(StrEnum):
    """What input does to a conversation that already has a running run (DESIGN 8)."""

    STEER = "steer"
    ENQUEUE = "enqueue"
    PARALLEL = "parallel"
    INTERRUPT = "interrupt"
    REJECT = "reject"


class AgentConfig(LenientModel):
    """An agent as it is projected for a run (HOST 2.3).

    Attributes:
        agent_id: The managed agent; null for an inline one.
        runner_id: What executes it.
        runner_config: Configuration that the runner's form describes.
        resource_policy: What it may use.
        state_policy: What it may remember.
        delivery_policy: What it may say.
        event_types: Events it handles.
        enabled: Takes part in resolution.
        max_attempts: Attempts at most when workers are lost (DESIGN 9).
        heartbeat_timeout_seconds: After this silence of a worker its runs count as lost.
        metadata: For diagnosis only.
    """

    agent_id: Identifier | None = None
    runner_id: Identifier
    runner_config: JsonObject = Field(default_factory=dict)
    resource_policy: ResourcePolicy = ResourcePolicy()
    state_policy: StatePolicy = StatePolicy()
    delivery_policy: DeliveryPolicy = DeliveryPolicy()
    event_types: list[EventType] = Field(default_factory=_default_event_types)
    enabled: bool = True
    max_attempts: int = Field(default=3, ge=1, le=100)
    heartbeat_timeout_seconds: float = Field(default=30.0, ge=1, le=3600)
    metadata: JsonObject = Field(default_factory=dict)


BindingScopeType: TypeAlias = Literal[
    "agent", "thread", "conversation", "actor", "channel", "bot", "workspace", "global"
]

BINDING_SCOPE_ORDER: Final[tuple[BindingScopeType, ...]] = (
    "thread",
    "conversation",
    "actor",
    "channel",
    "bot",
    "workspace",
    "global",
)
"""Most specific first; the first level with a match decides (D-41)."""


class BindingScope(LenientModel):
    """Where a binding applies (D-41).

    Attributes:
        scope_type: Level; `agent` marks a binding that was projected from an agent without one.
        scope_id: The thread, conversation, ... ; only `global` and `agent` can do without.
    """

    scope_type: BindingScopeType = "agent"
    scope_id: Identifier | None = None

    @model_validator(mode="after")
    def _has_id(self) -> Self:
        if self.scope_id is None and self.scope_type not in {"agent", "global"}:
            raise PydanticCustomError(
                "scope_id_missing", "Scope {scope_type} needs scope_id", {"scope_type": self.scope_type}
            )
        return self


_FILTER_VALUES: Final[dict[str, tuple[type, str]]] = {
    "in": (list, "list"),
    "exists": (bool, "boolean"),
    "prefix": (str, "text"),
    "matches": (str, "text"),
}


class EventFilter(LenientModel):
    """A condition on one envelope field; all filters of a binding must hold (D-42).

    Attributes:
        field: Path into the envelope, such as `data.channel`.
        op: Comparison.
        value: What to compare with: a list for `in`, a boolean for `exists`, text for `prefix` and `matches`.
    """

    field: str = Field(max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_-]+)*$")
    op: Literal["eq", "ne", "in", "prefix", "exists", "matches"]
    value: JsonValue = None

    @model_validator(mode="after")
    def _has_fitting_value(self) -> Self:
        kind, wanted = _FILTER_VALUES.get(self.op, (object, ""))
        if not isinstance(self.value, kind):
            raise PydanticCustomError(
                "filter_value", "Filter with op {op} needs a value of type {wanted}", {"op": self.op, "wanted": wanted}
            )
        return self


class AgentBinding(LenientModel):
    """Which events lead to which agent; never shown to a runner (HOST 2.4).

    Attributes:
        binding_id: Unique.
        scope: Where it applies.
        priority: Breaks ties inside a scope level, higher first (D-41).
        event_types: Events it handles.
        filters: Further conditions, all of which must hold.
        runner_id: What executes the agent.
        runner_config: Configuration that the runner's form describes.
        resource_policy: What the agent may use.
        state_policy: What it may remember.
        delivery_policy: What it may say.
        enabled: Takes part in resolution.
        agent_id: The managed agent.
    """

    binding_id: Identifier
    scope: BindingScope = BindingScope()
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    event_types: list[EventType] = Field(default_factory=_default_event_types)
    filters: list[EventFilter] = Field(default_factory=list, max_length=32)
    runner_id: Identifier
    runner_config: JsonObject = Field(default_factory=dict)
    resource_policy: ResourcePolicy = ResourcePolicy()
    state_policy: StatePolicy = StatePolicy()
    delivery_policy: DeliveryPolicy = DeliveryPolicy()
    enabled: bool = True
    agent_id: Identifier | None = None
