"""Plugin and workspace storage, where artifacts are kept, and the history of a thread."""

from alembic import op

revision = "0009_storage"
down_revision = "0008_knowledge"
branch_labels = None
depends_on = None

THREADS = "ix_transcript_threads"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        """
        CREATE TABLE plugin_storage (
            workspace_id VARCHAR(255) NOT NULL,
            owner VARCHAR(255) NOT NULL,
            key TEXT NOT NULL,
            value BYTEA NOT NULL,
            run_id UUID,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_plugin_storage PRIMARY KEY (workspace_id, owner, key)
        )
        """
    )
    op.execute("ALTER TABLE artifact ADD COLUMN storage_key TEXT")
    # Uncompressed, so that a part is read without the rest.
    op.execute("ALTER TABLE artifact_blob ALTER COLUMN content SET STORAGE EXTERNAL")
    # A key of 255 characters is longer once it is escaped.
    op.execute("ALTER TABLE runner_state ALTER COLUMN state_key TYPE TEXT")
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {THREADS}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY {THREADS} ON transcript (workspace_id, conversation_id, thread_id, seq) "
            "WHERE thread_id IS NOT NULL"
        )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(f"DROP INDEX {THREADS}")
    op.execute("ALTER TABLE runner_state ALTER COLUMN state_key TYPE VARCHAR(255)")
    op.execute("ALTER TABLE artifact_blob ALTER COLUMN content SET STORAGE EXTENDED")
    op.execute("ALTER TABLE artifact DROP COLUMN storage_key")
    op.execute("DROP TABLE plugin_storage")
