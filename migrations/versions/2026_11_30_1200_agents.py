"""Agents, bindings and the runner registry."""

from alembic import op

revision = "0001_agents"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE agent (
            workspace_id VARCHAR(255) NOT NULL,
            agent_id VARCHAR(255) NOT NULL,
            version INTEGER NOT NULL,
            is_current BOOLEAN NOT NULL,
            config JSONB NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_agent PRIMARY KEY (workspace_id, agent_id, version)
        )
        """
    )
    op.execute("CREATE UNIQUE INDEX uq_agent_current ON agent (workspace_id, agent_id) WHERE is_current")
    op.execute(
        """
        CREATE TABLE binding (
            workspace_id VARCHAR(255) NOT NULL,
            binding_id VARCHAR(255) NOT NULL,
            agent_id VARCHAR(255) NOT NULL,
            scope_type VARCHAR(50) NOT NULL,
            scope_id VARCHAR(255),
            event_types VARCHAR(100)[] NOT NULL,
            priority INTEGER DEFAULT 0 NOT NULL,
            enabled BOOLEAN DEFAULT true NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_binding PRIMARY KEY (workspace_id, binding_id),
            CONSTRAINT ck_binding_scope CHECK ((scope_type = 'workspace' AND scope_id IS NULL) OR (scope_type = 'bot' AND scope_id IS NOT NULL))
        )
        """
    )
    op.execute(
        "CREATE INDEX ix_binding_workspace_id_scope_type_scope_id ON binding (workspace_id, scope_type, scope_id) WHERE enabled"
    )
    op.execute(
        """
        CREATE TABLE runner (
            runner_id VARCHAR(255) NOT NULL,
            task_queue VARCHAR(255) NOT NULL,
            descriptor JSONB NOT NULL,
            is_stale BOOLEAN DEFAULT false NOT NULL,
            last_seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_runner PRIMARY KEY (runner_id)
        )
        """
    )
    op.execute("CREATE INDEX ix_runner_task_queue ON runner (task_queue)")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE runner")
    op.execute("DROP TABLE binding")
    op.execute("DROP TABLE agent")
