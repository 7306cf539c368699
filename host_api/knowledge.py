"""Who retrieves from a knowledge base: the host itself, or whoever else keeps bases of its kind."""

from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncEngine

from runhost.protocol.host_api import RetrievalEntry, RetrievalResult, RetrievalText, RetrieveParams
from stores.knowledge import KnowledgeBaseRow
from stores.knowledge_search import FoundPassage, PassageSearch


class KnowledgeProvider(Protocol):
    """Retrieves from the knowledge bases of one kind. One provider serves all workspaces."""

    async def retrieve(self, workspace_id: str, base: KnowledgeBaseRow, params: RetrieveParams) -> RetrievalResult:
        """Return the passages that answer a question, best first.

        Args:
            workspace_id: Workspace of the base, and of whoever asks.
            base: The base; its config is for the provider.
            params: The question.

        Raises:
            HostCallError: It cannot be answered; of a service that is called, `runtime_error`.
        """
        ...


class PostgresKnowledge:
    """Retrieves from the bases that are kept in the host's own database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def retrieve(self, workspace_id: str, base: KnowledgeBaseRow, params: RetrieveParams) -> RetrievalResult:
        """Search the passages of the base."""
        async with self._engine.connect() as connection:
            found = await PassageSearch(connection, workspace_id, base).retrieve(
                params.query_text, top_k=params.top_k, filters=params.filters
            )
        return RetrievalResult(items=[_entry(passage) for passage in found])


def _entry(passage: FoundPassage) -> RetrievalEntry:
    return RetrievalEntry(
        id=passage.passage_id,
        content=[RetrievalText(text=passage.content)],
        score=passage.score,
        # What the host says of a passage stands, whatever the document was uploaded with.
        metadata={
            **passage.metadata,
            "document_id": passage.document_id,
            "document_name": passage.document_name,
            "file_key": passage.file_key,
            "position": passage.position,
        },
    )
