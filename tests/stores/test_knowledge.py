"""Knowledge bases and their documents."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.errors import DocumentNotFound, KnowledgeBaseNotFound
from stores.knowledge import KnowledgeBaseRow, KnowledgeStore
from stores.knowledge_documents import MAX_PASSAGES, DocumentRow, DocumentStore, Outcome, prepare_document
from stores.knowledge_search import PassageSearch
from stores.knowledge_tables import knowledge_passage
from stores.knowledge_text import DocumentTooLarge
from stores.passages import PassageSizes

WORKSPACE = "w1"
SIZES = PassageSizes(200, 20)


async def put_base(engine: AsyncEngine, kb_id: str = "kb", workspace_id: str = WORKSPACE) -> KnowledgeBaseRow:
    new = {"name": "Handbook", "description": None, "kb_type": "postgres", "config": {}}
    async with engine.begin() as connection:
        return await KnowledgeStore(connection, workspace_id).put(kb_id, new)


async def upload(
    engine: AsyncEngine,
    text: str,
    document_id: str = "d1",
    *,
    kb_id: str = "kb",
    workspace_id: str = WORKSPACE,
    sizes: PassageSizes = SIZES,
    **more: Any,
) -> tuple[DocumentRow, Outcome]:
    fields: dict[str, Any] = {"name": None, "metadata": {}}
    content = text.encode("utf-8", "surrogatepass")
    document = prepare_document(document_id, content, "text/plain", sizes, **fields | more)
    async with engine.begin() as connection:
        return await DocumentStore(connection, workspace_id, kb_id).put(document)


async def passages(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return await connection.scalar(select(func.count()).select_from(knowledge_passage)) or 0


async def test_base_is_changed_and_keeps_its_documents(engine: AsyncEngine) -> None:
    first = await put_base(engine)
    await upload(engine, "text")
    again = await put_base(engine)
    assert (again.base_key, again.created_at) == (first.base_key, first.created_at)
    assert await passages(engine) == 1


async def test_same_document_again_writes_nothing(engine: AsyncEngine) -> None:
    await put_base(engine)
    first = await upload(engine, "text", metadata={"a": 1, "b": 2})
    again = await upload(engine, "text", metadata={"b": 2, "a": 1})
    assert first[1] == "created"
    assert again == (first[0], "unchanged")


@pytest.mark.parametrize(
    "changed",
    [{"text": "other"}, {"name": "other"}, {"metadata": {"a": 2}}, {"sizes": PassageSizes(300, 20)}],
    ids=str,
)
async def test_document_with_any_change_is_replaced(engine: AsyncEngine, changed: dict[str, Any]) -> None:
    await put_base(engine)
    first, _ = await upload(engine, "text", metadata={"a": 1})
    row, outcome = await upload(engine, **{"text": "text", "metadata": {"a": 1}} | changed)
    assert outcome == "replaced"
    assert (row.file_key, row.created_at) == (first.file_key, first.created_at)
    assert row.updated_at > first.updated_at
    assert await passages(engine) == 1


async def test_document_comes_back_as_it_was_uploaded(engine: AsyncEngine) -> None:
    await put_base(engine)
    text = "\ufeffa\x00b \ufdd0 \r\n"
    row, _ = await upload(engine, text, "docs/a b.txt", name="Ä\x00", metadata={"k\x00": "\ud800"})
    async with engine.connect() as connection:
        documents = DocumentStore(connection, WORKSPACE, "kb")
        assert await documents.read("docs/a b.txt") == text.encode()
        assert await documents.get("docs/a b.txt") == row
        assert (row.name, row.metadata, row.chunk_count) == ("Ä\x00", {"k\x00": "\ud800"}, 1)
        file, content = await KnowledgeStore(connection, WORKSPACE).read_document(row.file_key)
    assert (file.kb_id, file.document_id, content) == ("kb", "docs/a b.txt", text.encode())


async def test_document_of_another_workspace_or_of_no_key_is_not_found(engine: AsyncEngine) -> None:
    await put_base(engine)
    row, _ = await upload(engine, "text")
    async with engine.connect() as connection:
        for workspace_id, key in (("w2", row.file_key), (WORKSPACE, "no uuid"), (WORKSPACE, "d1")):
            with pytest.raises(DocumentNotFound):
                await KnowledgeStore(connection, workspace_id).read_document(key)
        for workspace_id, kb_id in (("w2", "kb"), (WORKSPACE, "other")):
            with pytest.raises(DocumentNotFound):
                await DocumentStore(connection, workspace_id, kb_id).get("d1")
            assert await DocumentStore(connection, workspace_id, kb_id).list(limit=10) == []


async def test_upload_to_a_base_that_is_gone_is_refused(engine: AsyncEngine) -> None:
    with pytest.raises(KnowledgeBaseNotFound):
        await upload(engine, "text")
    await put_base(engine)
    with pytest.raises(KnowledgeBaseNotFound):
        await upload(engine, "text", workspace_id="w2")


async def test_deleted_base_takes_its_documents_along(engine: AsyncEngine) -> None:
    for kb_id in ("kb", "other"):
        await put_base(engine, kb_id)
        await upload(engine, "text", kb_id=kb_id)
    async with engine.begin() as connection:
        await KnowledgeStore(connection, WORKSPACE).delete("kb")
        with pytest.raises(KnowledgeBaseNotFound):
            await KnowledgeStore(connection, WORKSPACE).delete("kb")
    assert await passages(engine) == 1


async def test_document_uploaded_again_after_its_end_is_another_file(engine: AsyncEngine) -> None:
    await put_base(engine)
    first, _ = await upload(engine, "text")
    async with engine.begin() as connection:
        assert await DocumentStore(connection, WORKSPACE, "kb").delete("d1") == first.file_key
    second, outcome = await upload(engine, "text")
    assert outcome == "created"
    assert second.file_key != first.file_key


async def test_readers_see_a_document_before_or_after_its_change(engine: AsyncEngine) -> None:
    base = await put_base(engine)
    old, new = "old word. " * 60, "new word. " * 90
    await upload(engine, old)
    prepared = prepare_document("d1", new.encode(), "text/plain", SIZES, name=None, metadata={})

    async def found() -> set[str]:
        async with engine.connect() as connection:
            hits = await PassageSearch(connection, WORKSPACE, base).retrieve("word", top_k=100)
        return {hit.content[:3] for hit in hits}

    async with engine.begin() as connection:
        await DocumentStore(connection, WORKSPACE, "kb").put(prepared)
        assert await found() == {"old"}
    assert await found() == {"new"}


async def test_uploads_of_one_document_at_once_end_as_one_of_them(engine: AsyncEngine) -> None:
    await put_base(engine)
    texts = [f"version{number}. " * 40 for number in range(5)]
    outcomes = await asyncio.gather(*(upload(engine, text) for text in texts))
    assert sorted(outcome for _, outcome in outcomes) == ["created", *["replaced"] * 4]
    async with engine.connect() as connection:
        kept = (await DocumentStore(connection, WORKSPACE, "kb").read("d1")).decode()
        contents = (await connection.scalars(select(knowledge_passage.c.content))).all()
    assert kept in texts
    assert all(kept[:8] in content for content in contents)
    assert len({content[:8] for content in contents}) == 1


async def test_document_with_too_many_passages_is_refused() -> None:
    text = ("x" * 199 + "\n\n") * (MAX_PASSAGES + 1)
    with pytest.raises(DocumentTooLarge, match="larger passages"):
        prepare_document("d", text.encode(), "text/plain", SIZES, name=None, metadata={})


async def test_documents_and_chosen_bases_are_listed_by_id(engine: AsyncEngine) -> None:
    for kb_id in ("kb", "other"):
        await put_base(engine, kb_id)
        for name in "bca":
            await upload(engine, name, name, kb_id=kb_id)
    async with engine.connect() as connection:
        listed = await DocumentStore(connection, WORKSPACE, "kb").list(after="a", limit=5)
        bases = await KnowledgeStore(connection, WORKSPACE).list_chosen(["other", "unknown"])
    assert [row.document_id for row in listed] == ["b", "c"]
    assert [base.kb_id for base in bases] == ["other"]
