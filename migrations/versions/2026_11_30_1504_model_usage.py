"""Tokens of the model calls that the host makes for runs."""

from alembic import op

revision = "0010_model_usage"
down_revision = "0009_storage"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE model_usage (
            usage_id BIGINT GENERATED ALWAYS AS IDENTITY,
            run_id UUID NOT NULL,
            attempt INTEGER NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            model_id VARCHAR(255) NOT NULL,
            usage JSONB NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_model_usage PRIMARY KEY (usage_id),
            CONSTRAINT fk_model_usage_run_id FOREIGN KEY (run_id) REFERENCES agent_run (run_id) ON DELETE CASCADE
        )
        """
    )
    op.execute("CREATE INDEX ix_model_usage_run_id_attempt ON model_usage (run_id, attempt)")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE model_usage")
