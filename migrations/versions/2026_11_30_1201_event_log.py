"""The log of incoming, host and audit events."""

from alembic import op

revision = "0002_event_log"
down_revision = "0001_agents"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE event_log (
            seq BIGINT GENERATED ALWAYS AS IDENTITY,
            workspace_id VARCHAR(255) NOT NULL,
            event_id VARCHAR(255) NOT NULL,
            event_type VARCHAR(100) NOT NULL,
            event_time TIMESTAMP WITH TIME ZONE,
            source VARCHAR(50) NOT NULL,
            source_event_type VARCHAR(255),
            bot_id VARCHAR(255),
            conversation_id VARCHAR(255),
            thread_id VARCHAR(255),
            actor_type VARCHAR(50),
            actor_id VARCHAR(255),
            actor_name TEXT,
            subject_type VARCHAR(50),
            subject_id VARCHAR(255),
            input_summary TEXT,
            envelope JSONB,
            content_hash BYTEA,
            disposition VARCHAR(50),
            outcome JSONB,
            run_id UUID,
            sequence BIGINT,
            runner_id VARCHAR(255),
            metadata JSONB DEFAULT '{}' NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_event_log PRIMARY KEY (seq),
            CONSTRAINT uq_event_log_workspace_id_event_id UNIQUE (workspace_id, event_id)
        )
        """
    )
    op.execute("CREATE INDEX ix_event_log_run_id ON event_log (run_id) WHERE run_id IS NOT NULL")
    op.execute(
        "CREATE INDEX ix_event_log_workspace_id_conversation_id_seq ON event_log (workspace_id, conversation_id, seq)"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE event_log")
