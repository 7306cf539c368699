"""What plugins keep between runs (D-17)."""

from sqlalchemy import Column, LargeBinary, PrimaryKeyConstraint, Table, func

from stores.columns import ID, TIME, UUID, EscapedText, metadata

plugin_storage = Table(
    "plugin_storage",
    metadata,
    Column("workspace_id", ID, nullable=False),
    # A plugin's identity, or `stores.plugin_storage.WORKSPACE` for what all plugins share.
    Column("owner", ID, nullable=False),
    Column("key", EscapedText, nullable=False),
    Column("value", LargeBinary, nullable=False),
    # The run that wrote it last.
    Column("run_id", UUID),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("workspace_id", "owner", "key"),
)
