"""What exists of what a run asks for, in one statement (D-10)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.catalog import Catalog, CatalogEntry, CatalogModel, CatalogQuery, CatalogStore
from stores.files import FileStore
from tests.fixtures import registries

MANY_DOCUMENTS = """
INSERT INTO knowledge_document (workspace_id, kb_id, document_id, file_key, name, mime_type, size_bytes, sha256,
    fingerprint, content, chunk_count, created_at)
SELECT 'w1', 'kb', n, gen_random_uuid(), n, 'text/plain', 1, '', '', '', 0, now() - n * interval '1 second'
FROM generate_series(1, 502) AS n
"""
EVERYTHING = CatalogQuery(
    models=["gpt", "ranker", "off", "gone"],
    tools=["s__search", "off__search", "gone"],
    knowledge_bases=["kb", "gone"],
    skills=None,
    files=["f", "gone"],
    documents=["kb"],
)


@pytest.fixture
async def stocked(engine: AsyncEngine) -> AsyncEngine:
    """A workspace with something of everything, and another one with the same ids."""
    async with engine.begin() as connection:
        for workspace in (registries.WORKSPACE, "w2"):
            await registries.put_model(connection, "gpt", workspace, context_window_tokens=128_000)
            await registries.put_model(connection, "ranker", workspace, model_type="rerank")
            await registries.put_model(connection, "off", workspace, enabled=False)
            await registries.put_tools(connection, {"search": "Searches\x00."}, workspace=workspace)
            await registries.put_tools(connection, {"search": "Off."}, "off", workspace=workspace, enabled=False)
            await registries.put_base(connection, "kb", "d1", "d2", workspace=workspace)
            await registries.put_skill(connection, "write", workspace, display_name="Writing", description="\ud800")
            await FileStore(connection, workspace).put("f", b"x", file_name="f.txt", mime_type="text/plain")
        await registries.put_skill(connection, "foreign", "w2")
    return engine


async def read(engine: AsyncEngine, query: CatalogQuery, workspace: str = registries.WORKSPACE) -> Catalog:
    async with engine.begin() as connection:
        return await CatalogStore(connection, workspace).read(query)


@contextmanager
def statements(engine: AsyncEngine) -> Iterator[list[str]]:
    """Collect the statements that are sent meanwhile."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine.sync_engine, "before_cursor_execute", note)


async def test_everything_asked_for_is_read_with_its_facts(stocked: AsyncEngine) -> None:
    found = await read(stocked, EVERYTHING)
    assert found.models == {
        "gpt": CatalogModel("llm", "openai", 128_000),
        "ranker": CatalogModel("rerank", "openai"),
    }
    assert found.tools == {"s__search": CatalogEntry(description="Searches\x00.")}
    assert found.knowledge_bases == {"kb": CatalogEntry("kb", "postgres")}
    assert found.skills == {"write": CatalogEntry("Writing", description="\ud800")}
    assert found.files == {"f": CatalogEntry("f.txt", "text/plain")}
    assert {(entry.name, entry.type, entry.kb_id) for entry in found.documents.values()} == {
        ("d1", "text/plain", "kb"),
        ("d2", "text/plain", "kb"),
    }


async def test_nothing_else_is_read(stocked: AsyncEngine) -> None:
    assert await read(stocked, CatalogQuery(skills=["gone", "foreign"])) == Catalog()
    found = await read(stocked, CatalogQuery(models=["gpt"]))
    assert found == Catalog(models={"gpt": CatalogModel("llm", "openai", 128_000)})


async def test_lookup_is_the_lock_and_one_statement(stocked: AsyncEngine) -> None:
    with statements(stocked) as seen:
        await read(stocked, EVERYTHING)
    assert len(seen) == 2


async def test_asking_for_nothing_costs_nothing(engine: AsyncEngine) -> None:
    """The path of every plain run."""
    with statements(engine) as seen:
        assert await read(engine, CatalogQuery()) == Catalog()
    assert seen == []


async def test_documents_are_the_newest_500(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await registries.put_base(connection, "kb")
        await connection.execute(text(MANY_DOCUMENTS))
    found = await read(engine, CatalogQuery(documents=["kb"]))
    assert [entry.name for entry in found.documents.values()] == [str(number) for number in range(1, 501)]
