"""Documents of what a run may reach. What is read drops what a newer host adds."""

from typing import Literal, TypeAlias

from pydantic import Field

from runhost.protocol import AgentResources, ContextAPICapabilities, JsonObject, LenientModel, Timestamp

RevocationKind: TypeAlias = Literal["model", "tool", "knowledge_base", "skill", "file", "run"]
"""What can be taken back from a run; `run` takes everything."""


class Authorization(LenientModel):
    """What a run may reach.

    Attributes:
        runner_id: Its runner.
        plugin_identity: The plugin that the runner belongs to, `author/name`.
        resources: Grants by id.
        available_apis: Pull APIs that are switched on.
        bot_id: Scope of the run, like the next two.
        conversation_id: See above.
        thread_id: See above.
        state_policy: Whether and in which scopes the run has state.
    """

    runner_id: str
    plugin_identity: str
    resources: AgentResources
    available_apis: ContextAPICapabilities
    bot_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    state_policy: JsonObject = Field(default_factory=dict)


class RevocationRead(LenientModel):
    """Something that was taken back; `id` is None for the kind `run`."""

    kind: str
    id: str | None = None
    reason: str | None = None
    revoked_at: Timestamp


class RunAuthorization(LenientModel):
    """What a run was granted, what was taken back, and what is left.

    Attributes:
        snapshot: Frozen when the run was prepared; None before that.
        revocations: Oldest first.
        effective: What every call of the run is checked against.
    """

    run_id: str
    snapshot: Authorization | None = None
    revocations: list[RevocationRead] = Field(default_factory=list)
    effective: Authorization | None = None


class AccessRead(LenientModel):
    """One call of a run to the host API.

    Attributes:
        action: The method.
        resource: What it reached for, such as `model:gpt`.
        scope: Operation, state scope, storage area or conversation.
        result: `ok`, `cancelled`, or the code of the refusal.
        duration_ms: From its arrival to its answer.
    """

    run_id: str
    attempt: int | None = None
    runner_id: str | None = None
    action: str
    resource: str | None = None
    scope: str | None = None
    result: str
    duration_ms: float
    created_at: Timestamp
