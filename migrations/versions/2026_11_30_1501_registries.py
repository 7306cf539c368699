"""Registries of what can be granted: models, tool servers and their tools, skills, files."""

from alembic import op

revision = "0007_registries"
down_revision = "0006_host_api"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE model (
            workspace_id VARCHAR(255) NOT NULL,
            model_id VARCHAR(255) NOT NULL,
            name VARCHAR(255) NOT NULL,
            model_type VARCHAR(50) DEFAULT 'llm' NOT NULL,
            provider VARCHAR(50) DEFAULT 'openai' NOT NULL,
            base_url TEXT NOT NULL,
            model_name VARCHAR(255) NOT NULL,
            api_key TEXT,
            context_window_tokens INTEGER,
            default_args JSONB DEFAULT '{}' NOT NULL,
            timeout_seconds DOUBLE PRECISION DEFAULT 120 NOT NULL,
            enabled BOOLEAN DEFAULT true NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_model PRIMARY KEY (workspace_id, model_id)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE tool_server (
            workspace_id VARCHAR(255) NOT NULL,
            server_id VARCHAR(255) NOT NULL,
            transport VARCHAR(50) NOT NULL,
            command JSONB DEFAULT '[]' NOT NULL,
            env JSONB DEFAULT '{}' NOT NULL,
            url TEXT,
            headers JSONB DEFAULT '{}' NOT NULL,
            enabled BOOLEAN DEFAULT true NOT NULL,
            is_stale BOOLEAN DEFAULT true NOT NULL,
            last_error TEXT,
            refreshed_at TIMESTAMP WITH TIME ZONE,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_tool_server PRIMARY KEY (workspace_id, server_id),
            CONSTRAINT ck_tool_server_address CHECK ((transport = 'stdio' AND url IS NULL) OR (transport = 'streamable_http' AND url IS NOT NULL))
        )
        """
    )
    op.execute(
        """
        CREATE TABLE tool (
            workspace_id VARCHAR(255) NOT NULL,
            tool_name VARCHAR(255) NOT NULL,
            server_id VARCHAR(255) NOT NULL,
            remote_name VARCHAR(255) NOT NULL,
            description TEXT,
            human_desc TEXT,
            parameters JSONB DEFAULT '{}' NOT NULL,
            CONSTRAINT pk_tool PRIMARY KEY (workspace_id, tool_name),
            CONSTRAINT fk_tool_workspace_id_server_id FOREIGN KEY (workspace_id, server_id) REFERENCES tool_server (workspace_id, server_id) ON DELETE CASCADE,
            CONSTRAINT uq_tool_workspace_id_server_id_remote_name UNIQUE (workspace_id, server_id, remote_name)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE skill (
            workspace_id VARCHAR(255) NOT NULL,
            skill_name VARCHAR(255) NOT NULL,
            display_name VARCHAR(255),
            description TEXT,
            instructions TEXT NOT NULL,
            sha256 VARCHAR(64) NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_skill PRIMARY KEY (workspace_id, skill_name)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE config_file (
            workspace_id VARCHAR(255) NOT NULL,
            file_key VARCHAR(255) NOT NULL,
            file_name TEXT,
            mime_type VARCHAR(255),
            size_bytes BIGINT NOT NULL,
            sha256 VARCHAR(64) NOT NULL,
            content BYTEA NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_config_file PRIMARY KEY (workspace_id, file_key)
        )
        """
    )
    op.execute("ALTER TABLE config_file ALTER COLUMN content SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table in ("config_file", "skill", "tool", "tool_server", "model"):
        op.execute(f"DROP TABLE {table}")
