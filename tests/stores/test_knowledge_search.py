"""Retrieval from a knowledge base."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.knowledge import KnowledgeBaseRow
from stores.knowledge_search import FoundPassage, PassageSearch
from tests.stores.test_knowledge import WORKSPACE, put_base, upload

DOCUMENTS = {
    "en/refunds": "Customers may return goods within 30 days. Money is refunded to the card within seven working days.",
    "en/shipping": "Parcels leave the warehouse every day at noon. Delivery to islands takes longer, up to ten days.",
    "en/accounts": "A forgotten password is reset from the sign-in page. Error E-4711 says that the account is locked.",
    "zh/refunds": "退货政策：客户可以在三十天内退货。退款将在收到货物后七个工作日内退回原支付卡。",
    "zh/shipping": "配送：包裹每天中午从仓库发出。发往海岛需要更长时间。",
    "zh/accounts": "账户：忘记密码可以在登录页面重置，链接一小时内有效。",
    "ja/refunds": "返品：商品は三十日以内に返品できます。返金は到着後七営業日以内に行われます。",
    "ja/shipping": "配送：荷物は毎日正午に倉庫から発送されます。離島への配達には時間がかかります。",
    "ja/accounts": "アカウント：パスワードを忘れた場合は、サインインページから再設定できます。",
}


@pytest.fixture
async def base(engine: AsyncEngine) -> KnowledgeBaseRow:
    base = await put_base(engine)
    for document_id, content in DOCUMENTS.items():
        language, topic = document_id.split("/")
        await upload(engine, content, document_id, metadata={"language": language, "topic": topic, "rank": 1})
    return base


async def ask(
    engine: AsyncEngine, base: KnowledgeBaseRow, query: str, *, workspace_id: str = WORKSPACE, **more: Any
) -> list[FoundPassage]:
    options: dict[str, Any] = {"top_k": 5, **more}
    async with engine.connect() as connection:
        return await PassageSearch(connection, workspace_id, base).retrieve(query, **options)


@pytest.mark.parametrize(
    ("question", "document_id"),
    [
        ("How long until the money for my return is refunded?", "en/refunds"),
        ("I want a refund!", "en/refunds"),
        ("When do you ship parcels to an island?", "en/shipping"),
        ("I forgot my passwords, what now?", "en/accounts"),
        ("E-4711", "en/accounts"),
        ("error e-4711?", "en/accounts"),
        ("471", "en/accounts"),
        ("hous", "en/shipping"),
        ("passwrd", "en/accounts"),
        ("退款需要几天？", "zh/refunds"),
        ("忘记密码怎么办", "zh/accounts"),
        ("包裹什么时候从仓库发出？", "zh/shipping"),
        ("仓库", "zh/shipping"),
        ("岛", "zh/shipping"),
        ("效", "zh/accounts"),
        ("返金はいつ行われますか", "ja/refunds"),
        ("パスワードを忘れました", "ja/accounts"),
        ("倉庫", "ja/shipping"),
    ],
)
async def test_question_leads_to_the_passage_that_answers_it(
    engine: AsyncEngine, base: KnowledgeBaseRow, question: str, document_id: str
) -> None:
    found = await ask(engine, base, question)
    assert found
    assert found[0].document_id == document_id


async def test_scores_fall_and_equal_ones_keep_their_order(engine: AsyncEngine, base: KnowledgeBaseRow) -> None:
    for number in range(5):
        await upload(engine, "the same twin text", f"twin{number}")
    first = await ask(engine, base, "refund of a twin within days", top_k=100)
    scores = [hit.score for hit in first]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert [hit.document_id for hit in first if hit.document_id.startswith("twin")] == [f"twin{n}" for n in range(5)]
    assert await ask(engine, base, "refund of a twin within days", top_k=100) == first
    assert await ask(engine, base, "refund of a twin within days", top_k=3) == first[:3]


@pytest.mark.parametrize(
    ("filters", "languages"),
    [
        (None, ["en", "ja", "zh"]),
        ({}, ["en", "ja", "zh"]),
        ({"language": "zh"}, ["zh"]),
        ({"language": "zh", "topic": "refunds"}, ["zh"]),
        ({"language": "zh", "topic": "none"}, []),
        ({"rank": 2}, []),
        ({"rank": "1"}, []),
        ({"nul\x00": "\ud800"}, []),
    ],
    ids=str,
)
async def test_filters_narrow_to_documents_with_equal_metadata(
    engine: AsyncEngine, base: KnowledgeBaseRow, filters: Any, languages: list[str]
) -> None:
    found = await ask(engine, base, "refund 退款 返金", filters=filters)
    assert sorted({hit.document_id.split("/")[0] for hit in found}) == languages


@pytest.mark.parametrize(
    "query",
    [
        *("%", "_", "%%%%", "\\", "\\%", "'", "''); DROP TABLE knowledge_passage; --", "!&|():*<->"),
        *("a\x00b", "\ud800", "\ufdd0", " ", "zzzzzz", "?!", "\U0001f600", "the"),
        *("x" * 10_000, "'" * 10_000, "词" * 10_000),
    ],
    ids=lambda query: ascii(query[:20]),
)
async def test_what_is_no_question_finds_nothing_and_breaks_nothing(
    engine: AsyncEngine, base: KnowledgeBaseRow, query: str
) -> None:
    found = await ask(engine, base, query)
    # "the" is too common to be a word, and stands in two passages as it is.
    assert {hit.document_id[:2] for hit in found} <= ({"en"} if query == "the" else set())
    assert len(await ask(engine, base, "refund")) == 1


async def test_text_that_postgres_would_refuse_is_found_and_comes_back(engine: AsyncEngine) -> None:
    base = await put_base(engine)
    await upload(engine, "code a\x00b \ufdd0 100%_sure", "d")
    for query in ("a\x00b", "100%_s", "\ufdd0", "code"):
        (hit,) = await ask(engine, base, query)
        assert hit.content == "code a\x00b \ufdd0 100%_sure"
    assert await ask(engine, base, "1__%_s") == []


async def test_other_bases_and_workspaces_are_never_searched(engine: AsyncEngine, base: KnowledgeBaseRow) -> None:
    other = await put_base(engine, "other")
    foreign = await put_base(engine, "kb", "w2")
    await upload(engine, "refund of the other base", kb_id="other")
    await upload(engine, "refund of the other workspace", workspace_id="w2")
    assert {hit.document_id for hit in await ask(engine, base, "refund")} == {"en/refunds"}
    assert [hit.content for hit in await ask(engine, other, "refund")] == ["refund of the other base"]
    found = await ask(engine, foreign, "refund", workspace_id="w2")
    assert [hit.content for hit in found] == ["refund of the other workspace"]
    assert await ask(engine, base, "refund", workspace_id="w2") == []


async def test_common_words_find_passages_that_have_them_all(engine: AsyncEngine) -> None:
    base = await put_base(engine)
    await upload(engine, "alpha\n\n".join(["x" * 150] * 30) + "\n\nbeta alpha gamma", "many")
    await upload(engine, "alpha beta gamma", "all")
    found = await ask(engine, base, "alpha beta gamma", top_k=2)
    assert {hit.document_id for hit in found} == {"many", "all"}
    assert all("beta" in hit.content for hit in found)


async def test_search_goes_by_the_indexes(engine: AsyncEngine, base: KnowledgeBaseRow) -> None:
    async with engine.connect() as connection:
        await PassageSearch(connection, WORKSPACE, base).retrieve("refund", top_k=1)
        for condition in ("words @@ 'refund'::tsquery", "spaced ILIKE '%efun%'", "'refnud' <% spaced"):
            plan = await connection.scalars(
                text(f"EXPLAIN SELECT FROM knowledge_passage WHERE base_key = {base.base_key} AND {condition}")
            )
            assert any("Bitmap Index Scan on ix_knowledge_passage_" in line for line in plan)
