"""The calls for knowledge bases, against the real API."""

import uuid

import pytest

from runhost.client import ApiProblem, DocumentUpload, KnowledgeBaseRequest, RunhostClient
from tests.client.stub import FAST
from tests.fixtures.live_host import LiveHost

UPLOAD = DocumentUpload(
    content="退款将在七个工作日内到账。".encode(), mime_type="text/markdown", metadata={"lang": "zh"}
)


async def test_base_is_filled_asked_and_deleted(live_host: LiveHost) -> None:
    kb_id, document_id = f"kb {uuid.uuid4().hex} ?#%你", "docs/a ?#%你.md"
    async with RunhostClient(live_host.url, live_host.key, retry=FAST) as client:
        base = await client.put_knowledge_base(kb_id, KnowledgeBaseRequest(description="what it knows"))
        assert base == await client.get_knowledge_base(kb_id)
        assert kb_id in [found.kb_id for found in (await client.list_knowledge_bases(limit=200)).items]

        put = await client.put_document(kb_id, document_id, UPLOAD)
        assert (put.outcome, put.chunk_count, put.metadata) == ("created", 1, {"lang": "zh"})
        assert (await client.put_document(kb_id, document_id, UPLOAD)).outcome == "unchanged"
        read = await client.get_document(kb_id, document_id)
        assert (await client.list_documents(kb_id)).items == [read]
        assert await client.read_document(kb_id, document_id) == UPLOAD.content

        (found,) = (await client.retrieve_knowledge(kb_id, "退款需要几天", filters={"lang": "zh"})).items
        assert found.metadata["document_id"] == document_id

        await client.delete_document(kb_id, document_id)
        assert (await client.retrieve_knowledge(kb_id, "退款需要几天")).items == []
        await client.delete_knowledge_base(kb_id)
        with pytest.raises(ApiProblem, match="not_found"):
            await client.get_knowledge_base(kb_id)
