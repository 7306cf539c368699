"""The transcript, artifacts and host-owned state."""

from alembic import op

revision = "0004_conversations"
down_revision = "0003_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    op.execute(
        """
        CREATE TABLE transcript (
            seq BIGINT GENERATED ALWAYS AS IDENTITY,
            transcript_id UUID NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            bot_id VARCHAR(255),
            conversation_id VARCHAR(255) NOT NULL,
            thread_id VARCHAR(255),
            event_id VARCHAR(255) NOT NULL,
            role VARCHAR(50) NOT NULL,
            item_type VARCHAR(50) DEFAULT 'message' NOT NULL,
            content TEXT,
            content_json JSONB,
            artifact_refs JSONB DEFAULT '[]' NOT NULL,
            run_id UUID,
            sequence BIGINT,
            attempt INTEGER,
            runner_id VARCHAR(255),
            metadata JSONB DEFAULT '{}' NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_transcript PRIMARY KEY (seq),
            CONSTRAINT uq_transcript_transcript_id UNIQUE (transcript_id)
        )
        """
    )
    op.execute("CREATE INDEX ix_transcript_run_id ON transcript (run_id)")
    op.execute("CREATE INDEX ix_transcript_trigrams ON transcript USING gin (content gin_trgm_ops)")
    op.execute("CREATE INDEX ix_transcript_words ON transcript USING gin (to_tsvector('simple', content))")
    op.execute(
        "CREATE INDEX ix_transcript_workspace_id_conversation_id_seq ON transcript (workspace_id, conversation_id, seq)"
    )
    op.execute("CREATE INDEX ix_transcript_workspace_id_event_id ON transcript (workspace_id, event_id)")
    op.execute(
        """
        CREATE TABLE artifact (
            workspace_id VARCHAR(255) NOT NULL,
            artifact_id VARCHAR(255) NOT NULL,
            artifact_type VARCHAR(50) NOT NULL,
            mime_type VARCHAR(255),
            name TEXT,
            size_bytes BIGINT,
            sha256 VARCHAR(64),
            source VARCHAR(50) NOT NULL,
            storage_type VARCHAR(50) NOT NULL,
            bot_id VARCHAR(255),
            conversation_id VARCHAR(255),
            thread_id VARCHAR(255),
            run_id UUID,
            sequence BIGINT,
            runner_id VARCHAR(255),
            metadata JSONB DEFAULT '{}' NOT NULL,
            expires_at TIMESTAMP WITH TIME ZONE,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_artifact PRIMARY KEY (workspace_id, artifact_id)
        )
        """
    )
    op.execute("CREATE INDEX ix_artifact_run_id ON artifact (run_id)")
    op.execute(
        """
        CREATE TABLE artifact_blob (
            workspace_id VARCHAR(255) NOT NULL,
            sha256 VARCHAR(64) NOT NULL,
            content BYTEA NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_artifact_blob PRIMARY KEY (workspace_id, sha256)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE runner_state (
            scope_key VARCHAR(512) NOT NULL,
            state_key VARCHAR(255) NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            scope VARCHAR(50) NOT NULL,
            runner_id VARCHAR(255) NOT NULL,
            binding_identity VARCHAR(255) NOT NULL,
            conversation_id VARCHAR(255),
            value JSONB,
            run_id UUID,
            sequence BIGINT,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_runner_state PRIMARY KEY (scope_key, state_key)
        )
        """
    )
    op.execute(
        "CREATE INDEX ix_runner_state_workspace_id_conversation_id ON runner_state (workspace_id, conversation_id)"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE runner_state")
    op.execute("DROP TABLE artifact_blob")
    op.execute("DROP TABLE artifact")
    op.execute("DROP TABLE transcript")
