"""Knowledge bases as a run reaches them (PM-3, D-13)."""

from typing import Any

import pytest

from host_api.errors import HostCallError
from host_api.methods.knowledge import list_knowledge_bases, retrieve_knowledge
from runhost.protocol import AgentResources, KnowledgeBaseResource
from runhost.protocol.host_api import RetrievalEntry, RetrievalResult, RetrieveParams
from stores.knowledge import KnowledgeBaseRow, KnowledgeStore
from stores.knowledge_documents import DocumentStore, prepare_document
from stores.passages import PassageSizes
from tests.fixtures.host import WORKSPACE, Host
from tests.host_api.conftest import GrantedRun, make_services

TEXT = "Refunds take seven working days. 退款将在七个工作日内到账。"


def granted(run: GrantedRun, **operations: list[str]) -> Any:
    bases = [KnowledgeBaseResource(kb_id=kb_id, operations=chosen) for kb_id, chosen in operations.items()]
    return run.narrowed(resources=AgentResources(knowledge_bases=bases))


async def put_base(host: Host, kb_id: str, text: str = TEXT, *, workspace_id: str = WORKSPACE, **more: Any) -> None:
    new = {"name": kb_id.upper(), "description": "what it knows", "kb_type": "postgres", "config": {}, **more}
    document = prepare_document("d", text.encode(), "text/plain", PassageSizes(), name="D", metadata={"lang": "en"})
    async with host.engine.begin() as connection:
        await KnowledgeStore(connection, workspace_id).put(kb_id, new)
        await DocumentStore(connection, workspace_id, kb_id).put(document)


async def test_granted_base_answers_questions(host: Host, run: GrantedRun) -> None:
    await put_base(host, "kb")
    authorization = granted(run, kb=["retrieve"])
    for query in ("how long does a refund take", "退款需要几天"):
        answer = await run.ask(
            retrieve_knowledge, authorization=authorization, kb_id="kb", query_text=query, filters={"lang": "en"}
        )
        (found,) = answer.items
        assert found.content[0].text == TEXT
        assert (found.metadata["document_name"], found.metadata["position"]) == ("D", 0)
        assert found.score is not None


@pytest.mark.parametrize("operations", [{}, {"other": ["retrieve"]}, {"kb": ["list"]}], ids=str)
async def test_pm_3_base_that_is_not_granted_is_refused(
    host: Host, run: GrantedRun, operations: dict[str, list[str]]
) -> None:
    await put_base(host, "kb")
    refusals: list[str] = []
    for kb_id in ("kb", "nowhere"):
        with pytest.raises(HostCallError) as refused:
            await run.ask(retrieve_knowledge, authorization=granted(run, **operations), kb_id=kb_id, query_text="x")
        assert refused.value.code == "unauthorized"
        refusals.append(refused.value.message.replace(repr(kb_id), "ID"))
    assert refusals[0] == refusals[1]


async def test_base_of_another_workspace_is_not_found_even_if_granted(host: Host, run: GrantedRun) -> None:
    await put_base(host, "kb", workspace_id="w2")
    with pytest.raises(HostCallError, match="no knowledge base 'kb'") as refused:
        await run.ask(retrieve_knowledge, authorization=granted(run, kb=["retrieve"]), kb_id="kb", query_text="x")
    assert refused.value.code == "not_found"


async def test_list_shows_bases_granted_for_listing_that_exist(host: Host, run: GrantedRun) -> None:
    for kb_id in ("b", "a", "c", "d"):
        await put_base(host, kb_id)
    authorization = granted(run, b=["list", "retrieve"], a=["list"], c=["retrieve"], gone=["list"])
    answer = await run.ask(list_knowledge_bases, authorization=authorization)
    assert [(base.kb_id, base.kb_name, base.kb_type, base.description) for base in answer.items] == [
        ("a", "A", "postgres", "what it knows"),
        ("b", "B", "postgres", "what it knows"),
    ]
    assert (await run.ask(list_knowledge_bases, authorization=granted(run))).items == []


class Elsewhere:
    """A provider that a host is given for bases of another kind."""

    async def retrieve(self, workspace_id: str, base: KnowledgeBaseRow, params: RetrieveParams) -> RetrievalResult:
        entry = RetrievalEntry(id=f"{workspace_id}/{base.kb_id}", content=[], metadata=base.config)
        return RetrievalResult(items=[entry])


async def test_base_of_another_kind_is_served_by_its_provider(host: Host, run: GrantedRun) -> None:
    await put_base(host, "kb", kb_type="elsewhere", config={"index": "i"})
    params = RetrieveParams(kb_id="kb", query_text="x")
    services = make_services(host, run.services.pool, other_knowledge={"elsewhere": Elsewhere()})
    call = run.call(authorization=granted(run, kb=["retrieve"]))
    answer = await retrieve_knowledge.run(type(call)(call.session, services), params)
    assert (answer.items[0].id, answer.items[0].metadata) == ("w1/kb", {"index": "i"})
    with pytest.raises(HostCallError, match="nobody serves its kind"):
        await retrieve_knowledge.run(call, params)
