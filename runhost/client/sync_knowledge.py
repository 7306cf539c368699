"""The blocking twin of the calls for knowledge bases."""

from runhost.client.client import RunhostClient
from runhost.client.knowledge_models import (
    DocumentRead,
    DocumentReceipt,
    DocumentUpload,
    KnowledgeBaseRead,
    KnowledgeBaseRequest,
)
from runhost.client.models import Page
from runhost.client.wires import run_blocking
from runhost.protocol import JsonObject
from runhost.protocol.host_api import RetrievalResult


class SyncKnowledgeCalls:
    """The part of `SyncRunhostClient` that keeps knowledge bases; see `KnowledgeCalls`."""

    _client: RunhostClient

    def put_knowledge_base(self, kb_id: str, base: KnowledgeBaseRequest) -> KnowledgeBaseRead:
        """Create or change a knowledge base; its documents stay. The id has no slash."""
        return run_blocking(self._client.put_knowledge_base(kb_id, base))

    def get_knowledge_base(self, kb_id: str) -> KnowledgeBaseRead:
        """Read a knowledge base."""
        return run_blocking(self._client.get_knowledge_base(kb_id))

    def list_knowledge_bases(self, *, limit: int = 50, cursor: str | None = None) -> Page[KnowledgeBaseRead]:
        """Read a page of the knowledge bases, in order of their ids; at most 200."""
        return run_blocking(self._client.list_knowledge_bases(limit=limit, cursor=cursor))

    def delete_knowledge_base(self, kb_id: str) -> None:
        """Delete a knowledge base with its documents, and take it back from open runs."""
        return run_blocking(self._client.delete_knowledge_base(kb_id))

    def put_document(self, kb_id: str, document_id: str, document: DocumentUpload) -> DocumentReceipt:
        """Upload a document, or replace it; the same again changes nothing."""
        return run_blocking(self._client.put_document(kb_id, document_id, document))

    def get_document(self, kb_id: str, document_id: str) -> DocumentRead:
        """Read what is known of a document."""
        return run_blocking(self._client.get_document(kb_id, document_id))

    def read_document(self, kb_id: str, document_id: str) -> bytes:
        """Read the bytes of a document as they were uploaded."""
        return run_blocking(self._client.read_document(kb_id, document_id))

    def list_documents(self, kb_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[DocumentRead]:
        """Read a page of what is known of documents, in order of their ids; at most 200."""
        return run_blocking(self._client.list_documents(kb_id, limit=limit, cursor=cursor))

    def delete_document(self, kb_id: str, document_id: str) -> None:
        """Delete a document, and take it back from open runs as a file."""
        return run_blocking(self._client.delete_document(kb_id, document_id))

    def retrieve_knowledge(
        self, kb_id: str, query_text: str, *, top_k: int = 5, filters: JsonObject | None = None
    ) -> RetrievalResult:
        """Ask a knowledge base, as runs do; see `KnowledgeCalls.retrieve_knowledge`."""
        return run_blocking(self._client.retrieve_knowledge(kb_id, query_text, top_k=top_k, filters=filters))
