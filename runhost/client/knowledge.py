"""Calls for knowledge bases, their documents, and questions to them."""

import json

from runhost.client.exchange import Exchange, segment
from runhost.client.knowledge_models import (
    DocumentRead,
    DocumentReceipt,
    DocumentUpload,
    KnowledgeBaseRead,
    KnowledgeBaseRequest,
)
from runhost.client.models import Page
from runhost.protocol import JsonObject
from runhost.protocol.host_api import RetrievalResult


class KnowledgeCalls:
    """The part of `RunhostClient` that keeps knowledge bases. Ids are of the caller's choice."""

    _exchange: Exchange

    async def put_knowledge_base(self, kb_id: str, base: KnowledgeBaseRequest) -> KnowledgeBaseRead:
        """Create or change a knowledge base; its documents stay. The id has no slash."""
        body = base.model_dump(mode="json", exclude_unset=True)
        return await self._exchange.call(KnowledgeBaseRead, "PUT", _base(kb_id), body=body)

    async def get_knowledge_base(self, kb_id: str) -> KnowledgeBaseRead:
        """Read a knowledge base."""
        return await self._exchange.call(KnowledgeBaseRead, "GET", _base(kb_id))

    async def list_knowledge_bases(self, *, limit: int = 50, cursor: str | None = None) -> Page[KnowledgeBaseRead]:
        """Read a page of the knowledge bases, in order of their ids; at most 200."""
        query = _paging(limit, cursor)
        return await self._exchange.call(Page[KnowledgeBaseRead], "GET", "/v1/knowledge-bases", query=query)

    async def delete_knowledge_base(self, kb_id: str) -> None:
        """Delete a knowledge base with its documents, and take it back from open runs."""
        await self._exchange.send("DELETE", _base(kb_id))

    async def put_document(self, kb_id: str, document_id: str, document: DocumentUpload) -> DocumentReceipt:
        """Upload a document, or replace it; the same again changes nothing.

        10 MiB take the host up to a minute. A try that was given up goes on there, and the next one waits for it.
        """
        query: dict[str, str] = {}
        if document.name is not None:
            query["name"] = document.name
        if document.metadata:
            query["metadata"] = json.dumps(document.metadata)
        return await self._exchange.call(
            DocumentReceipt,
            "PUT",
            _document(kb_id, document_id),
            query=query,
            content=document.content,
            content_type=document.mime_type,
        )

    async def get_document(self, kb_id: str, document_id: str) -> DocumentRead:
        """Read what is known of a document."""
        return await self._exchange.call(DocumentRead, "GET", _document(kb_id, document_id))

    async def read_document(self, kb_id: str, document_id: str) -> bytes:
        """Read the bytes of a document as they were uploaded."""
        return (await self._exchange.send("GET", f"{_document(kb_id, document_id)}/content")).content

    async def list_documents(self, kb_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[DocumentRead]:
        """Read a page of what is known of documents, in order of their ids; at most 200."""
        query = _paging(limit, cursor)
        return await self._exchange.call(Page[DocumentRead], "GET", f"{_base(kb_id)}/documents", query=query)

    async def delete_document(self, kb_id: str, document_id: str) -> None:
        """Delete a document, and take it back from open runs as a file."""
        await self._exchange.send("DELETE", _document(kb_id, document_id))

    async def retrieve_knowledge(
        self, kb_id: str, query_text: str, *, top_k: int = 5, filters: JsonObject | None = None
    ) -> RetrievalResult:
        """Ask a knowledge base, as runs do.

        Args:
            kb_id: The base.
            query_text: A question, or words, or a part of the text.
            top_k: Most passages that are answered, at most 100.
            filters: What the metadata of documents must contain: equal values under the same keys.
        """
        body: JsonObject = {"query_text": query_text, "top_k": top_k, "filters": filters}
        return await self._exchange.call(RetrievalResult, "POST", f"{_base(kb_id)}/retrieve", body=body)


def _base(kb_id: str) -> str:
    return f"/v1/knowledge-bases/{segment(kb_id)}"


def _document(kb_id: str, document_id: str) -> str:
    return f"{_base(kb_id)}/documents/{segment(document_id)}"


def _paging(limit: int, cursor: str | None) -> dict[str, str]:
    return {"limit": str(limit)} if cursor is None else {"limit": str(limit), "cursor": cursor}
