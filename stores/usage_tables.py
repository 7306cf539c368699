"""Tokens of the model calls that the host makes for runs (D-32)."""

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, Table, func

from stores.columns import COUNT, ID, JSON, TIME, UUID, always, metadata

model_usage = Table(
    "model_usage",
    metadata,
    Column("usage_id", COUNT, always(), primary_key=True),
    Column("run_id", UUID, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("workspace_id", ID, nullable=False),
    Column("model_id", ID, nullable=False),
    Column("usage", JSON, nullable=False),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    ForeignKeyConstraint(["run_id"], ["agent_run.run_id"], ondelete="CASCADE"),
    Index(None, "run_id", "attempt"),
)
