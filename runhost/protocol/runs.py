"""Runs and their ledger as everyone reads them (LEDGER 3 and 4, DESIGN 6, D-34)."""

from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AwareDatetime, Field

from runhost.protocol.content import ArtifactRef, Usage
from runhost.protocol.identifiers import Code, Identifier, workflow_id_for
from runhost.protocol.json import Count, Integer, JsonObject, LenientModel

Timestamp: TypeAlias = Annotated[AwareDatetime, Field(strict=False)]
"""A time with its zone; RFC 3339 in UTC as text (API.md)."""


class RunStatus(StrEnum):
    """Where a run stands (DESIGN 6). `OPEN` and `TERMINAL` divide the members between them."""

    CREATED = "created"
    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"

    @property
    def is_terminal(self) -> bool:
        """The run has ended; only a retry can open it again."""
        return self in TERMINAL


OPEN: Final = frozenset({RunStatus.CREATED, RunStatus.QUEUED, RunStatus.CLAIMED, RunStatus.RUNNING, RunStatus.WAITING})
TERMINAL: Final = frozenset(RunStatus) - OPEN


class HostEventType(StrEnum):
    """Ledger rows that the host itself writes."""

    ATTEMPT_STARTED = "host.attempt_started"
    ATTEMPT_ENDED = "host.attempt_ended"
    CANCEL_REQUESTED = "host.cancel_requested"
    GRANT_REVOKED = "host.grant_revoked"
    RESULT_REJECTED = "host.result_rejected"
    RUN_ENDED = "host.run_ended"


class AgentRun(LenientModel):
    """One execution of an agent for one event (LEDGER 3).

    Attributes:
        run_id: UUIDv7 as text; also the trace id.
        event_id: Event that caused it.
        agent_id: Agent that was executed.
        agent_version: Version of that agent; a later change does not touch the run.
        binding_id: Binding that chose the agent.
        runner_id: What executed it.
        conversation_id: Scope, like the next three.
        thread_id: See above.
        workspace_id: See above.
        bot_id: See above.
        status: Where it stands.
        status_reason: Why, for people.
        status_code: Why, as a code (D-34).
        created_at: When the run was recorded.
        started_at: When its first attempt started.
        finished_at: When it ended.
        updated_at: When anything of it last changed.
        deadline_at: When it times out.
        cancel_requested_at: When somebody asked for its end.
        delivery: Where results go.
        metadata: Anything else.
        last_sequence: Newest ledger row; 0 when there is none.
        current_attempt: Attempt that may write; 0 before the first.
        usage: Sum over the run; unknown is null.
        retry_of: Run that this one starts over.
    """

    run_id: Identifier
    event_id: Identifier | None = None
    agent_id: Identifier | None = None
    agent_version: Count | None = None
    binding_id: Identifier | None = None
    runner_id: Identifier
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    workspace_id: Identifier | None = None
    bot_id: Identifier | None = None
    status: Annotated[RunStatus, Field(strict=False)]
    status_reason: str | None = None
    status_code: str | None = None
    created_at: Timestamp
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    deadline_at: Timestamp | None = None
    cancel_requested_at: Timestamp | None = None
    delivery: JsonObject | None = None
    metadata: JsonObject = Field(default_factory=dict)
    last_sequence: Count = 0
    current_attempt: Count = 0
    usage: Usage | None = None
    retry_of: Identifier | None = None

    @property
    def workflow_id(self) -> str:
        """Id of the workflow that owns the run."""
        return workflow_id_for(self.run_id)


class AgentRunAttempt(LenientModel):
    """One start of the runner within a run (DESIGN 4).

    Attributes:
        run_id: The run.
        attempt: Number within the run, from 1.
        started_at: When it was opened.
        ended_at: When it ended; null while it goes on.
        outcome: `completed`, `failed`, `cancelled`, `timeout`, or `lost` with its worker.
        code: Why, as a code.
        reason: Why, for people.
        retryable: Trying again may help.
        worker_identity: Temporal worker that held it.
        temporal_run_id: Temporal run of the workflow that opened it.
        activity_attempt: Which try of the activity it was, from 1.
        completed_messages: Whole messages that it said.
        usage: Tokens; unknown is null.
    """

    run_id: Identifier
    attempt: Count
    started_at: Timestamp
    ended_at: Timestamp | None = None
    outcome: str | None = None
    code: str | None = None
    reason: str | None = None
    retryable: bool | None = None
    worker_identity: str
    temporal_run_id: str
    activity_attempt: Count
    completed_messages: Count = 0
    usage: Usage | None = None


class AgentRunEvent(LenientModel):
    """One ledger row: a result, or a fact of the host (LEDGER 4).

    Attributes:
        run_id: The run.
        sequence: Position in the run, contiguous from 1 (INV-3).
        type: Result type, known or unknown, or a `HostEventType`.
        data: Payload.
        created_at: When the row was written.
        source: Who caused it.
        artifact_refs: Artifacts that came with it.
        metadata: Anything else.
        source_sequence: Number that the runner gave, unique in its attempt.
        attempt: Attempt that wrote it; null for rows about the run as a whole.
        usage: Tokens that this result reported (D-32).
    """

    run_id: Identifier
    sequence: Annotated[int, Field(ge=1)]
    type: Code
    data: JsonObject = Field(default_factory=dict)
    created_at: Timestamp
    source: Literal["host", "runner"] = "runner"
    artifact_refs: list[ArtifactRef] = Field(default_factory=list)
    metadata: JsonObject = Field(default_factory=dict)
    source_sequence: Integer | None = None
    attempt: Count | None = None
    usage: Usage | None = None


class RunEventPage(LenientModel):
    """A page of the ledger in sequence order; cursors are opaque (D-46)."""

    items: list[AgentRunEvent] = Field(default_factory=list)
    next_cursor: str | None = None
    has_more: bool = False
