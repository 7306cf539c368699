"""What a workspace has to grant: models, tool servers with their tools, skills, files (HOST 6).

Secrets in these rows are the ones that a provider or a server wants to see, so they are kept as they are.
They leave the database on the way to that address only.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
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

from stores.columns import COUNT, ID, JSON, KIND, TIME, EscapedText, metadata


def _times() -> tuple[Column[object], Column[object]]:
    return (
        Column("created_at", TIME, nullable=False, server_default=func.now()),
        Column("updated_at", TIME, nullable=False, server_default=func.now()),
    )


model = Table(
    "model",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("model_id", ID, nullable=False),
    Column("name", ID, nullable=False),
    Column("model_type", KIND, nullable=False, server_default=text("'llm'")),
    Column("provider", KIND, nullable=False, server_default=text("'openai'")),
    Column("base_url", Text, nullable=False),
    # What the provider calls it.
    Column("model_name", ID, nullable=False),
    # A secret, like `env` and `headers` of a tool server.
    Column("api_key", Text),
    Column("context_window_tokens", Integer),
    Column("default_args", JSON, nullable=False, server_default=text("'{}'")),
    Column("timeout_seconds", Float, nullable=False, server_default=text("120")),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    *_times(),
    PrimaryKeyConstraint("workspace_id", "model_id"),
)

tool_server = Table(
    "tool_server",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("server_id", ID, nullable=False),
    Column("transport", KIND, nullable=False),
    # A list of texts: the program and its arguments. Empty but for stdio.
    Column("command", JSON, nullable=False, server_default=text("'[]'")),
    Column("env", JSON, nullable=False, server_default=text("'{}'")),
    Column("url", Text),
    Column("headers", JSON, nullable=False, server_default=text("'{}'")),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    # True while the tools are not what the server at this address said last (D-19).
    Column("is_stale", Boolean, nullable=False, server_default=text("true")),
    Column("last_error", EscapedText),
    Column("refreshed_at", TIME),
    *_times(),
    PrimaryKeyConstraint("workspace_id", "server_id"),
    CheckConstraint(
        "(transport = 'stdio' AND url IS NULL) OR (transport = 'streamable_http' AND url IS NOT NULL)",
        name="address",
    ),
)

tool = Table(
    "tool",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("tool_name", ID, nullable=False),
    Column("server_id", ID, nullable=False),
    # What its server calls it.
    Column("remote_name", ID, nullable=False),
    Column("description", EscapedText),
    Column("human_desc", EscapedText),
    Column("parameters", JSON, nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("workspace_id", "tool_name"),
    ForeignKeyConstraint(
        ["workspace_id", "server_id"], ["tool_server.workspace_id", "tool_server.server_id"], ondelete="CASCADE"
    ),
    UniqueConstraint("workspace_id", "server_id", "remote_name"),
)

skill = Table(
    "skill",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("skill_name", ID, nullable=False),
    Column("display_name", ID),
    Column("description", EscapedText),
    Column("instructions", EscapedText, nullable=False),
    # Of the instructions, so that a record can say which ones a run was given (G-7).
    Column("sha256", String(64), nullable=False),
    *_times(),
    PrimaryKeyConstraint("workspace_id", "skill_name"),
)

config_file = Table(
    "config_file",
    metadata,
    Column("workspace_id", ID, nullable=False),
    Column("file_key", ID, nullable=False),
    Column("file_name", EscapedText),
    Column("mime_type", ID),
    Column("size_bytes", COUNT, nullable=False),
    Column("sha256", String(64), nullable=False),
    # Kept uncompressed (SET STORAGE EXTERNAL), so that a part is read without the rest.
    Column("content", LargeBinary, nullable=False),
    *_times(),
    PrimaryKeyConstraint("workspace_id", "file_key"),
)
