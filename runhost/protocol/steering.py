"""Input that a running run has claimed (PROTOCOL 9.5, 9.10)."""

from typing import Annotated

from pydantic import Field

from runhost.protocol.context import (
    ActorContext,
    AgentEventContext,
    AgentInput,
    ConversationContext,
    SubjectContext,
)
from runhost.protocol.identifiers import Identifier
from runhost.protocol.json import EpochSeconds, JsonObject, StrictModel, UnknownFields


class SteeringInputItem(StrictModel):
    """A message that arrived while the run was running; the host never merges two of them.

    Attributes:
        claimed_run_id: The run that claimed it.
        runner_id: That run's runner.
        claimed_at: When.
        event: The event.
        input: Its input.
        conversation: Where it took place.
        actor: Who caused it.
        subject: What it is about.
        metadata: Anything else.
    """

    claimed_run_id: Identifier
    runner_id: Identifier
    claimed_at: EpochSeconds | None = None
    event: AgentEventContext
    input: Annotated[AgentInput, UnknownFields("ignore")]
    conversation: ConversationContext | None = None
    actor: ActorContext | None = None
    subject: SubjectContext | None = None
    metadata: JsonObject = Field(default_factory=dict)


class SteeringPullResult(StrictModel):
    """Claimed inputs in the order in which they were claimed, at most 100."""

    items: list[SteeringInputItem] = Field(default_factory=list)
