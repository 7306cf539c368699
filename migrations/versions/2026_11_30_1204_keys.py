"""API keys, idempotency keys and secrets of the host."""

from alembic import op

revision = "0005_keys"
down_revision = "0004_conversations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE api_key (
            key_id UUID NOT NULL,
            workspace_id VARCHAR(255) NOT NULL,
            name VARCHAR(255) NOT NULL,
            key_hash BYTEA NOT NULL,
            scopes VARCHAR(50)[] NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            expires_at TIMESTAMP WITH TIME ZONE,
            revoked_at TIMESTAMP WITH TIME ZONE,
            CONSTRAINT pk_api_key PRIMARY KEY (key_id),
            CONSTRAINT uq_api_key_key_hash UNIQUE (key_hash)
        )
        """
    )
    op.execute("CREATE INDEX ix_api_key_workspace_id ON api_key (workspace_id)")
    op.execute(
        """
        CREATE TABLE idempotency_key (
            workspace_id VARCHAR(255) NOT NULL,
            key VARCHAR(255) NOT NULL,
            operation VARCHAR(255) NOT NULL,
            request_hash BYTEA NOT NULL,
            response JSONB NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_idempotency_key PRIMARY KEY (workspace_id, key)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE host_secret (
            name VARCHAR(50) NOT NULL,
            value BYTEA NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_host_secret PRIMARY KEY (name)
        )
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE host_secret")
    op.execute("DROP TABLE idempotency_key")
    op.execute("DROP TABLE api_key")
