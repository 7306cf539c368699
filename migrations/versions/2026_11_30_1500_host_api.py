"""The run-scoped host API: who touched what, what was taken back, and the way from a token to its attempt."""

from alembic import op

revision = "0006_host_api"
down_revision = "0005_keys"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE agent_run ADD COLUMN revocations JSONB DEFAULT '[]' NOT NULL")
    op.execute(
        "CREATE UNIQUE INDEX uq_agent_run_attempt_token_hash ON agent_run_attempt (token_hash) "
        "WHERE token_hash IS NOT NULL"
    )
    op.execute(
        """
        CREATE TABLE access_audit (
            access_id BIGINT GENERATED ALWAYS AS IDENTITY,
            workspace_id VARCHAR(255) NOT NULL,
            run_id UUID,
            attempt INTEGER,
            runner_id VARCHAR(255),
            action VARCHAR(255) NOT NULL,
            resource TEXT,
            scope TEXT,
            result VARCHAR(100) NOT NULL,
            duration_us BIGINT NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE NOT NULL,
            CONSTRAINT pk_access_audit PRIMARY KEY (access_id)
        )
        """
    )
    op.execute("CREATE INDEX ix_access_audit_run_id_access_id ON access_audit (run_id, access_id)")
    op.execute("CREATE INDEX ix_access_audit_workspace_id_access_id ON access_audit (workspace_id, access_id)")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE access_audit")
    op.execute("DROP INDEX uq_agent_run_attempt_token_hash")
    op.execute("ALTER TABLE agent_run DROP COLUMN revocations")
