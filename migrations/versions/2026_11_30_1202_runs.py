"""Runs, their attempts and their ledger.

Partitions of the ledger are no part of a revision: they come with time (stores/partitions.py).
"""

from alembic import op

revision = "0003_runs"
down_revision = "0002_event_log"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE agent_run (
            run_id UUID NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            event_id VARCHAR(255) NOT NULL,
            event_type VARCHAR(100) NOT NULL,
            agent_id VARCHAR(255) NOT NULL,
            agent_version INTEGER NOT NULL,
            binding_id VARCHAR(255),
            runner_id VARCHAR(255) NOT NULL,
            bot_id VARCHAR(255),
            conversation_id VARCHAR(255),
            thread_id VARCHAR(255),
            status VARCHAR(50) NOT NULL,
            status_code VARCHAR(100),
            status_reason TEXT,
            envelope JSONB NOT NULL,
            "authorization" JSONB,
            context JSONB,
            last_sequence BIGINT DEFAULT 0 NOT NULL,
            current_attempt INTEGER DEFAULT 0 NOT NULL,
            attempt_commits BIGINT DEFAULT 0 NOT NULL,
            attempt_outcome VARCHAR(50),
            usage JSONB,
            deadline_at TIMESTAMP WITH TIME ZONE,
            cancel_requested_at TIMESTAMP WITH TIME ZONE,
            cancel_reason TEXT,
            metadata JSONB DEFAULT '{}' NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            started_at TIMESTAMP WITH TIME ZONE,
            finished_at TIMESTAMP WITH TIME ZONE,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_agent_run PRIMARY KEY (run_id),
            CONSTRAINT fk_agent_run_workspace_id_event_id FOREIGN KEY(workspace_id, event_id) REFERENCES event_log (workspace_id, event_id) ON DELETE RESTRICT,
            CONSTRAINT fk_agent_run_workspace_id_agent_id_agent_version FOREIGN KEY(workspace_id, agent_id, agent_version) REFERENCES agent (workspace_id, agent_id, version) ON DELETE RESTRICT,
            CONSTRAINT uq_agent_run_workspace_id_event_id UNIQUE (workspace_id, event_id)
        )
         WITH (fillfactor = 70)
        """
    )
    op.execute("CREATE INDEX ix_agent_run_created ON agent_run (created_at) WHERE status = 'created'")
    op.execute("CREATE INDEX ix_agent_run_workspace_id_agent_id_run_id ON agent_run (workspace_id, agent_id, run_id)")
    op.execute(
        "CREATE INDEX ix_agent_run_workspace_id_conversation_id_run_id ON agent_run (workspace_id, conversation_id, run_id)"
    )
    op.execute("CREATE INDEX ix_agent_run_workspace_id_run_id ON agent_run (workspace_id, run_id)")
    op.execute("CREATE INDEX ix_agent_run_workspace_id_status_run_id ON agent_run (workspace_id, status, run_id)")
    op.execute(
        """
        CREATE TABLE agent_run_attempt (
            run_id UUID NOT NULL,
            attempt INTEGER NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            temporal_run_id VARCHAR(255) NOT NULL,
            activity_id VARCHAR(255) NOT NULL,
            activity_attempt INTEGER NOT NULL,
            worker_identity VARCHAR(255) NOT NULL,
            token_hash BYTEA,
            started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            ended_at TIMESTAMP WITH TIME ZONE,
            outcome VARCHAR(50),
            code VARCHAR(100),
            reason TEXT,
            retryable BOOLEAN,
            completed_messages INTEGER DEFAULT 0 NOT NULL,
            usage JSONB,
            CONSTRAINT pk_agent_run_attempt PRIMARY KEY (run_id, attempt),
            CONSTRAINT fk_agent_run_attempt_run_id FOREIGN KEY(run_id) REFERENCES agent_run (run_id) ON DELETE CASCADE,
            CONSTRAINT uq_agent_run_attempt_execution UNIQUE (run_id, temporal_run_id, activity_id, activity_attempt)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE agent_run_event (
            run_id UUID NOT NULL,
            sequence BIGINT NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            attempt INTEGER,
            source VARCHAR(50) NOT NULL,
            source_sequence BIGINT,
            type TEXT NOT NULL,
            data JSONB NOT NULL,
            usage JSONB,
            artifact_refs JSONB,
            metadata JSONB,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_agent_run_event PRIMARY KEY (run_id, sequence),
            CONSTRAINT uq_agent_run_event_run_id_attempt_source_sequence UNIQUE (run_id, attempt, source_sequence)
        )
         PARTITION BY RANGE (run_id)
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE agent_run_event")
    op.execute("DROP TABLE agent_run_attempt")
    op.execute("DROP TABLE agent_run")
