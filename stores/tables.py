"""Every table (DESIGN 5). One glance at what the host knows.

Ids and kinds follow the lengths of HOST 15. A row belongs to one workspace; the runner registry and the
host's own secrets belong to the whole host.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from stores.columns import COUNT, EVENT_TYPE, ID, JSON, KIND, TIME, UUID, EscapedText, always, metadata


def _created_at() -> Column[object]:
    return Column("created_at", TIME, nullable=False, server_default=func.now())


event_log = Table(
    "event_log",
    metadata,
    Column("seq", COUNT, always(), primary_key=True),
    Column("workspace_id", ID, nullable=False),
    Column("event_id", ID, nullable=False),
    Column("event_type", EVENT_TYPE, nullable=False),
    Column("event_time", TIME),
    Column("source", KIND, nullable=False),
    Column("source_event_type", ID),
    Column("bot_id", ID),
    Column("conversation_id", ID),
    Column("thread_id", ID),
    Column("actor_type", KIND),
    Column("actor_id", ID),
    Column("actor_name", EscapedText),
    Column("subject_type", KIND),
    Column("subject_id", ID),
    Column("input_summary", EscapedText),
    # The envelope as it came, inline content taken out (HOST 9.3). Null for rows that the host wrote itself.
    Column("envelope", JSON),
    Column("content_hash", LargeBinary),
    # What became of an incoming event; a redelivery is answered with it (D-21).
    Column("disposition", KIND),
    Column("outcome", JSON),
    Column("run_id", UUID),
    Column("sequence", COUNT),
    Column("runner_id", ID),
    Column("metadata", JSON, nullable=False, server_default=text("'{}'")),
    _created_at(),
    UniqueConstraint("workspace_id", "event_id"),
    Index(None, "workspace_id", "conversation_id", "seq"),
    Index(None, "run_id", postgresql_where=text("run_id IS NOT NULL")),
)

agent = Table(
    "agent",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("agent_id", ID, nullable=False),
    # A row is one version and never changes, but for `is_current`; a run keeps the version it used.
    Column("version", Integer, nullable=False),
    Column("is_current", Boolean, nullable=False),
    Column("config", JSON, nullable=False),
    _created_at(),
    PrimaryKeyConstraint("workspace_id", "agent_id", "version"),
    Index("uq_agent_current", "workspace_id", "agent_id", unique=True, postgresql_where=text("is_current")),
)

binding = Table(
    "binding",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("binding_id", ID, nullable=False),
    Column("agent_id", ID, nullable=False),
    Column("scope_type", KIND, nullable=False),
    Column("scope_id", ID),
    Column("event_types", ARRAY(EVENT_TYPE), nullable=False),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    _created_at(),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("workspace_id", "binding_id"),
    CheckConstraint(
        "(scope_type = 'workspace' AND scope_id IS NULL) OR (scope_type = 'bot' AND scope_id IS NOT NULL)",
        name="scope",
    ),
    Index(None, "workspace_id", "scope_type", "scope_id", postgresql_where=text("enabled")),
)

runner = Table(
    "runner",
    metadata,
    Column("runner_id", ID, primary_key=True),
    Column("task_queue", ID, nullable=False),
    Column("descriptor", JSON, nullable=False),
    # True while the last discovery of its source failed: the last good descriptor goes on to serve (D-19).
    Column("is_stale", Boolean, nullable=False, server_default=text("false")),
    Column("last_seen_at", TIME, nullable=False, server_default=func.now()),
    Index(None, "task_queue"),
)

agent_run = Table(
    "agent_run",
    metadata,
    Column("run_id", UUID, primary_key=True),
    Column("workspace_id", ID, nullable=False),
    Column("event_id", ID, nullable=False),
    Column("event_type", EVENT_TYPE, nullable=False),
    Column("agent_id", ID, nullable=False),
    Column("agent_version", Integer, nullable=False),
    Column("binding_id", ID),
    Column("runner_id", ID, nullable=False),
    Column("bot_id", ID),
    Column("conversation_id", ID),
    Column("thread_id", ID),
    Column("status", KIND, nullable=False),
    Column("status_code", String(100)),
    Column("status_reason", EscapedText),
    # The envelope with its content: what the runner is given. Only the run's own attempts read it.
    Column("envelope", JSON, nullable=False),
    # Frozen by prepare_run (D-15): what the run may reach, and the context that an attempt starts from.
    Column("authorization", JSON),
    # What was taken back since; it only grows, so what is left of the snapshot only shrinks (INV-10).
    Column("revocations", JSON, nullable=False, server_default=text("'[]'")),
    Column("context", JSON),
    Column("last_sequence", COUNT, nullable=False, server_default=text("0")),
    # The fence: every write for an attempt names it, and passes only while it is current and has no outcome.
    Column("current_attempt", Integer, nullable=False, server_default=text("0")),
    Column("attempt_commits", COUNT, nullable=False, server_default=text("0")),
    Column("attempt_outcome", KIND),
    Column("usage", JSON),
    Column("deadline_at", TIME),
    Column("cancel_requested_at", TIME),
    Column("cancel_reason", EscapedText),
    Column("metadata", JSON, nullable=False, server_default=text("'{}'")),
    _created_at(),
    Column("started_at", TIME),
    Column("finished_at", TIME),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    ForeignKeyConstraint(
        ["workspace_id", "event_id"], ["event_log.workspace_id", "event_log.event_id"], ondelete="RESTRICT"
    ),
    ForeignKeyConstraint(
        ["workspace_id", "agent_id", "agent_version"],
        ["agent.workspace_id", "agent.agent_id", "agent.version"],
        ondelete="RESTRICT",
    ),
    # One event leads to at most one run (INV-2).
    UniqueConstraint("workspace_id", "event_id"),
    Index(None, "workspace_id", "run_id"),
    Index(None, "workspace_id", "status", "run_id"),
    Index(None, "workspace_id", "agent_id", "run_id"),
    Index(None, "workspace_id", "conversation_id", "run_id"),
    Index("ix_agent_run_created", "created_at", postgresql_where=text("status = 'created'")),
    # Every commit of a run updates its row: room on the page keeps these updates off the indexes.
    postgresql_with={"fillfactor": "70"},
)

agent_run_attempt = Table(
    "agent_run_attempt",
    metadata,
    Column("run_id", UUID, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("workspace_id", ID, nullable=False),
    Column("temporal_run_id", ID, nullable=False),
    Column("activity_id", ID, nullable=False),
    Column("activity_attempt", Integer, nullable=False),
    Column("worker_identity", ID, nullable=False),
    # SHA-256 of the run token; null once the attempt has ended.
    Column("token_hash", LargeBinary),
    Column("started_at", TIME, nullable=False, server_default=func.now()),
    Column("ended_at", TIME),
    Column("outcome", KIND),
    Column("code", String(100)),
    Column("reason", EscapedText),
    Column("retryable", Boolean),
    Column("completed_messages", Integer, nullable=False, server_default=text("0")),
    Column("usage", JSON),
    PrimaryKeyConstraint("run_id", "attempt"),
    ForeignKeyConstraint(["run_id"], ["agent_run.run_id"], ondelete="CASCADE"),
    UniqueConstraint(
        "run_id",
        "temporal_run_id",
        "activity_id",
        "activity_attempt",
        name="uq_agent_run_attempt_execution",
    ),
    Index(
        "uq_agent_run_attempt_token_hash", "token_hash", unique=True, postgresql_where=text("token_hash IS NOT NULL")
    ),
)

access_audit = Table(
    "access_audit",
    metadata,
    Column("access_id", COUNT, always(), primary_key=True),
    Column("workspace_id", ID, nullable=False),
    # Null where nobody showed a token that is known.
    Column("run_id", UUID),
    Column("attempt", Integer),
    Column("runner_id", ID),
    Column("action", ID, nullable=False),
    Column("resource", EscapedText),
    Column("scope", EscapedText),
    Column("result", String(100), nullable=False),
    Column("duration_us", COUNT, nullable=False),
    Column("created_at", TIME, nullable=False),
    Index(None, "run_id", "access_id"),
    Index(None, "workspace_id", "access_id"),
)

agent_run_event = Table(
    "agent_run_event",
    metadata,
    Column("run_id", UUID, nullable=False),
    Column("sequence", COUNT, nullable=False),
    Column("workspace_id", ID, nullable=False),
    Column("attempt", Integer),
    Column("source", KIND, nullable=False),
    Column("source_sequence", COUNT),
    Column("type", Text, nullable=False),
    Column("data", JSON, nullable=False),
    Column("usage", JSON),
    Column("artifact_refs", JSON),
    Column("metadata", JSON),
    _created_at(),
    PrimaryKeyConstraint("run_id", "sequence"),
    # Postgres checks it per partition, which is per run: a UUIDv7 lives in exactly one.
    UniqueConstraint("run_id", "attempt", "source_sequence"),
    postgresql_partition_by="RANGE (run_id)",
)

transcript = Table(
    "transcript",
    metadata,
    Column("seq", COUNT, always(), primary_key=True),
    Column("transcript_id", UUID, nullable=False, unique=True),
    Column("workspace_id", ID, nullable=False),
    Column("bot_id", ID),
    Column("conversation_id", ID, nullable=False),
    Column("thread_id", ID),
    Column("event_id", ID, nullable=False),
    Column("role", KIND, nullable=False),
    Column("item_type", KIND, nullable=False, server_default=text("'message'")),
    Column("content", EscapedText),
    Column("content_json", JSON),
    Column("artifact_refs", JSON, nullable=False, server_default=text("'[]'")),
    Column("run_id", UUID),
    Column("sequence", COUNT),
    Column("attempt", Integer),
    Column("runner_id", ID),
    Column("metadata", JSON, nullable=False, server_default=text("'{}'")),
    _created_at(),
    Index(None, "workspace_id", "conversation_id", "seq"),
    Index(None, "run_id"),
    Index(None, "workspace_id", "event_id"),
    # A short thread is found in a long conversation without reading the rest of it.
    Index(
        "ix_transcript_threads",
        "workspace_id",
        "conversation_id",
        "thread_id",
        "seq",
        postgresql_where=text("thread_id IS NOT NULL"),
    ),
    Index("ix_transcript_words", text("to_tsvector('simple', content)"), postgresql_using="gin"),
    # Languages without word breaks are found by trigrams (D-47).
    Index(
        "ix_transcript_trigrams",
        "content",
        postgresql_using="gin",
        postgresql_ops={"content": "gin_trgm_ops"},
    ),
)

artifact = Table(
    "artifact",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("artifact_id", ID, nullable=False),
    Column("artifact_type", KIND, nullable=False),
    Column("mime_type", ID),
    Column("name", EscapedText),
    Column("size_bytes", COUNT),
    Column("sha256", String(64)),
    Column("source", KIND, nullable=False),
    # `blob` (in artifact_blob), `file`, `url`, `platform_ref` or `metadata_only`; the key says where, and is
    # None for a blob, which is found by its digest.
    Column("storage_type", KIND, nullable=False),
    Column("storage_key", EscapedText),
    Column("bot_id", ID),
    Column("conversation_id", ID),
    Column("thread_id", ID),
    Column("run_id", UUID),
    Column("sequence", COUNT),
    Column("runner_id", ID),
    Column("metadata", JSON, nullable=False, server_default=text("'{}'")),
    Column("expires_at", TIME),
    _created_at(),
    PrimaryKeyConstraint("workspace_id", "artifact_id"),
    Index(None, "run_id"),
)

artifact_blob = Table(
    "artifact_blob",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    _created_at(),
    PrimaryKeyConstraint("workspace_id", "sha256"),
)

runner_state = Table(
    "runner_state",
    metadata,
    Column("scope_key", String(512), nullable=False),
    Column("state_key", EscapedText, nullable=False),
    Column("workspace_id", ID, nullable=False),
    Column("scope", KIND, nullable=False),
    Column("runner_id", ID, nullable=False),
    Column("binding_identity", ID, nullable=False),
    Column("conversation_id", ID),
    # SQL null stands for the JSON value null.
    Column("value", JSON),
    Column("run_id", UUID),
    Column("sequence", COUNT),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("scope_key", "state_key"),
    Index(None, "workspace_id", "conversation_id"),
)

api_key = Table(
    "api_key",
    metadata,
    Column("key_id", UUID, primary_key=True),
    Column("workspace_id", ID, nullable=False),
    Column("name", ID, nullable=False),
    Column("key_hash", LargeBinary, nullable=False, unique=True),
    Column("scopes", ARRAY(String(50)), nullable=False),
    _created_at(),
    Column("expires_at", TIME),
    Column("revoked_at", TIME),
    Index(None, "workspace_id"),
)

idempotency_key = Table(
    "idempotency_key",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("key", ID, nullable=False),
    Column("operation", ID, nullable=False),
    Column("request_hash", LargeBinary, nullable=False),
    Column("response", JSON, nullable=False),
    _created_at(),
    PrimaryKeyConstraint("workspace_id", "key"),
)

host_secret = Table(
    "host_secret",
    metadata,
    Column("name", KIND, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    _created_at(),
)
