"""Knowledge bases, their documents and passages."""

from alembic import op

revision = "0008_knowledge"
down_revision = "0007_registries"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # So that the indexes of passages can begin with the base.
    op.execute("CREATE EXTENSION IF NOT EXISTS btree_gin")
    op.execute(
        """
        CREATE TABLE knowledge_base (
            workspace_id VARCHAR(255) NOT NULL,
            kb_id VARCHAR(255) NOT NULL,
            base_key BIGINT GENERATED ALWAYS AS IDENTITY,
            name TEXT NOT NULL,
            description TEXT,
            kb_type VARCHAR(50) NOT NULL,
            config JSONB DEFAULT '{}' NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_knowledge_base PRIMARY KEY (workspace_id, kb_id),
            CONSTRAINT uq_knowledge_base_base_key UNIQUE (base_key)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE knowledge_document (
            workspace_id VARCHAR(255) NOT NULL,
            kb_id VARCHAR(255) NOT NULL,
            document_id VARCHAR(255) NOT NULL,
            file_key UUID NOT NULL,
            name TEXT NOT NULL,
            mime_type VARCHAR(255) NOT NULL,
            size_bytes BIGINT NOT NULL,
            sha256 VARCHAR(64) NOT NULL,
            fingerprint BYTEA NOT NULL,
            content BYTEA NOT NULL,
            metadata JSONB DEFAULT '{}' NOT NULL,
            chunk_count INTEGER NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_knowledge_document PRIMARY KEY (workspace_id, kb_id, document_id),
            CONSTRAINT uq_knowledge_document_file_key UNIQUE (file_key),
            CONSTRAINT fk_knowledge_document_workspace_id_kb_id FOREIGN KEY (workspace_id, kb_id)
                REFERENCES knowledge_base (workspace_id, kb_id) ON DELETE CASCADE,
            CONSTRAINT ck_knowledge_document_chunk_count CHECK (chunk_count >= 0)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE knowledge_passage (
            file_key UUID NOT NULL,
            position INTEGER NOT NULL,
            base_key BIGINT NOT NULL,
            content TEXT NOT NULL,
            words TSVECTOR NOT NULL,
            spaced TEXT,
            CONSTRAINT pk_knowledge_passage PRIMARY KEY (file_key, position),
            CONSTRAINT fk_knowledge_passage_file_key FOREIGN KEY (file_key)
                REFERENCES knowledge_document (file_key) ON DELETE CASCADE
        )
        """
    )
    op.execute("CREATE INDEX ix_knowledge_passage_words ON knowledge_passage USING gin (base_key, words)")
    op.execute(
        "CREATE INDEX ix_knowledge_passage_trigrams ON knowledge_passage USING gin (base_key, spaced gin_trgm_ops)"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE knowledge_passage")
    op.execute("DROP TABLE knowledge_document")
    op.execute("DROP TABLE knowledge_base")
