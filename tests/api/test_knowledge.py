"""Knowledge bases, their documents, and questions to them."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select, update

from api.auth import Scope
from stores.knowledge_text import MAX_DOCUMENT_BYTES
from stores.tables import agent_run
from tests.api.conftest import Host

BASE = "/v1/knowledge-bases/kb"
DOCUMENT = f"{BASE}/documents/docs/refunds.md"
TEXT = "Refunds take seven working days.\n\n退款将在七个工作日内到账。"
PLAIN = {"Content-Type": "text/plain"}


@pytest.fixture
async def document(host: Host) -> dict[str, Any]:
    """What the owner, ``host``, has: a base with a document."""
    assert (await host.client.put(BASE, json={"name": "Handbook"})).status_code == 200
    return (await put(host.client)).json()


async def put(client: httpx.AsyncClient, text: str | bytes = TEXT, path: str = DOCUMENT, **more: Any) -> httpx.Response:
    known: dict[str, Any] = {"headers": {"Content-Type": "text/markdown; charset=utf-8"}}
    return await client.put(path, content=text, **known | more)


async def ask(host: Host, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await host.client.post(f"{BASE}/retrieve", json={"query_text": query} | more)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def test_base_is_created_changed_listed_and_deleted(host: Host) -> None:
    created = (await host.client.put(BASE, json={})).json()
    assert (created["name"], created["kb_type"]) == ("kb", "postgres")
    assert created["config"] == {"passage_characters": 800, "overlap_characters": 100}
    body = {"name": "N", "description": "D", "config": {"passage_characters": 400, "overlap_characters": 0}}
    changed = (await host.client.put(BASE, json=body)).json()
    assert changed["created_at"] == created["created_at"]
    assert (await host.client.get(BASE)).json() == changed
    await host.client.put("/v1/knowledge-bases/other", json={})
    first = (await host.client.get("/v1/knowledge-bases", params={"limit": 1})).json()
    rest = (await host.client.get("/v1/knowledge-bases", params={"cursor": first["next_cursor"]})).json()
    assert [item["kb_id"] for item in first["items"] + rest["items"]] == ["kb", "other"]
    assert (await host.client.delete(BASE)).status_code == 204
    assert (await host.client.get(BASE)).status_code == 404
    assert (await host.client.delete(BASE)).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kb_type": "oracle"}, "kb_type"),
        ({"colour": "red"}, "colour"),
        ({"name": ""}, "name"),
        ({"config": {"passage_characters": 10}}, "config.passage_characters"),
        ({"config": {"passage_characters": 400, "overlap_characters": 101}}, "config"),
    ],
)
async def test_bad_base_is_refused_by_field(host: Host, body: dict[str, Any], field: str) -> None:
    answer = await host.client.put(BASE, json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert (await host.client.get(BASE)).status_code == 404


async def test_document_is_uploaded_and_answers_questions(host: Host, document: dict[str, Any]) -> None:
    assert document["outcome"] == "created"
    assert (document["document_id"], document["name"], document["mime_type"], document["chunk_count"]) == (
        "docs/refunds.md",
        "docs/refunds.md",
        "text/markdown",
        1,
    )
    UUID(document["file_key"])
    for question in ("How long does a refund take?", "退款需要几天？"):
        (found,) = await ask(host, question)
        assert found["content"] == [{"type": "text", "text": TEXT}]
        assert found["metadata"] == {
            "document_id": "docs/refunds.md",
            "document_name": "docs/refunds.md",
            "file_key": document["file_key"],
            "position": 0,
        }
    assert await ask(host, "lighthouse") == []


async def test_same_document_again_is_unchanged_and_another_replaces_it(host: Host, document: dict[str, Any]) -> None:
    again = (await put(host.client)).json()
    assert again == document | {"outcome": "unchanged"}
    other = (await put(host.client, "Parcels leave at noon.")).json()
    assert (other["outcome"], other["file_key"]) == ("replaced", document["file_key"])
    assert await ask(host, "refund") == []
    assert len(await ask(host, "parcels")) == 1


async def test_name_and_metadata_come_with_the_query(host: Host, document: dict[str, Any]) -> None:
    params = {"name": "Ä &", "metadata": json.dumps({"lang": "en", "nul": "\x00"})}
    changed = (await put(host.client, params=params)).json()
    assert (changed["name"], changed["metadata"]) == ("Ä &", {"lang": "en", "nul": "\x00"})
    assert len(await ask(host, "refund", filters={"lang": "en", "nul": "\x00"})) == 1
    assert await ask(host, "refund", filters={"lang": "zh"}) == []


async def test_id_that_would_be_read_as_the_content_of_another_is_refused(host: Host, document: dict[str, Any]) -> None:
    answer = await put(host.client, path=f"{DOCUMENT}/content")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "document_id")


async def test_documents_are_listed_read_and_deleted(host: Host, document: dict[str, Any]) -> None:
    await put(host.client, "other", f"{BASE}/documents/a")
    first = (await host.client.get(f"{BASE}/documents", params={"limit": 1})).json()
    rest = (await host.client.get(f"{BASE}/documents", params={"cursor": first["next_cursor"]})).json()
    assert [item["document_id"] for item in first["items"] + rest["items"]] == ["a", "docs/refunds.md"]
    document.pop("outcome")
    assert rest["items"] == [document]
    assert (await host.client.get(DOCUMENT)).json() == document
    assert (await host.client.delete(DOCUMENT)).status_code == 204
    assert (await host.client.get(DOCUMENT)).status_code == 404
    assert (await host.client.delete(DOCUMENT)).status_code == 404
    assert await ask(host, "refund") == []


async def test_content_is_given_back_as_it_came(host: Host, document: dict[str, Any]) -> None:
    answer = await host.client.get(f"{DOCUMENT}/content")
    assert (answer.content, answer.headers["content-type"]) == (TEXT.encode(), "text/markdown")
    assert answer.headers["content-disposition"].startswith("attachment;")
    part = await host.client.get(f"{DOCUMENT}/content", headers={"Range": "bytes=0-6"})
    assert (part.status_code, part.content) == (206, b"Refunds")
    assert (await host.client.get(f"{DOCUMENT}/content", headers={"Range": "bytes=999-"})).status_code == 416
    known = await host.client.get(f"{DOCUMENT}/content", headers={"If-None-Match": answer.headers["etag"]})
    assert known.status_code == 304


@pytest.mark.parametrize(
    ("content", "more", "status", "told"),
    [
        (b"%PDF", {"headers": {"Content-Type": "application/pdf"}}, 415, "text/markdown, text/plain"),
        (b"x", {"headers": {}}, 415, "Content-Type"),
        (b"\xff\xfe", {"headers": PLAIN}, 422, "body: no UTF-8 at byte 0"),
        (b"{", {"headers": {"Content-Type": "application/json"}}, 422, "body: no JSON"),
        (b"x", {"headers": PLAIN, "params": {"metadata": "[]"}}, 422, "metadata: must be a JSON object"),
        (b"x", {"headers": PLAIN, "params": {"metadata": '{"a": NaN}'}}, 422, "metadata: must be a JSON object"),
        (b"x", {"headers": PLAIN, "params": {"metadata": json.dumps({"a": "x" * 17_000})}}, 422, "16384 bytes"),
        (b"x", {"headers": PLAIN, "params": {"name": ""}}, 422, "name"),
        (b" " * (MAX_DOCUMENT_BYTES + 1), {"headers": PLAIN}, 413, str(MAX_DOCUMENT_BYTES)),
    ],
    ids=["type", "no type", "not utf-8", "not json", "list", "nan", "much metadata", "no name", "large"],
)
async def test_document_that_cannot_be_taken_is_refused(
    host: Host, document: dict[str, Any], content: bytes, more: dict[str, Any], status: int, told: str
) -> None:
    answer = await put(host.client, content, **more)
    assert (answer.status_code, told in answer.json()["detail"]) == (status, True), answer.text
    assert len(await ask(host, "refund")) == 1


async def test_empty_document_has_no_passages(host: Host, document: dict[str, Any]) -> None:
    answer = await put(host.client, b"")
    assert (answer.status_code, answer.json()["chunk_count"]) == (200, 0)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query_text": ""}, "query_text"),
        ({"query_text": "x", "top_k": 101}, "top_k"),
        ({"query_text": "x", "top_k": 0}, "top_k"),
        ({"query_text": "x", "filters": []}, "filters"),
        ({"query_text": "x" * 10_001}, "query_text"),
    ],
)
async def test_bad_question_is_refused_by_field(
    host: Host, document: dict[str, Any], body: dict[str, Any], field: str
) -> None:
    answer = await host.client.post(f"{BASE}/retrieve", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


@dataclass(frozen=True)
class Case:
    """A route: who may call it, and with what."""

    method: str
    path: str
    scope: Scope
    more: dict[str, Any]
    status: int = 200

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


CASES = [
    Case("PUT", "", Scope.AGENTS_WRITE, {"json": {}}),
    Case("GET", "", Scope.RUNS_READ, {}),
    Case("POST", "/retrieve", Scope.RUNS_READ, {"json": {"query_text": "refund"}}),
    Case("PUT", "/documents/docs/refunds.md", Scope.AGENTS_WRITE, {"content": b"x", "headers": PLAIN}),
    Case("GET", "/documents", Scope.RUNS_READ, {}),
    Case("GET", "/documents/docs/refunds.md", Scope.RUNS_READ, {}),
    Case("GET", "/documents/docs/refunds.md/content", Scope.RUNS_READ, {}),
    Case("DELETE", "/documents/docs/refunds.md", Scope.AGENTS_WRITE, {}, 204),
    Case("DELETE", "", Scope.AGENTS_WRITE, {}, 204),
]
all_routes = pytest.mark.parametrize("case", CASES, ids=str)


async def send(client: httpx.AsyncClient, case: Case, base: str = BASE) -> httpx.Response:
    return await client.request(case.method, base + case.path, **case.more)


@all_routes
async def test_scope_alone_opens_a_route_and_no_other_does(host: Host, document: dict[str, Any], case: Case) -> None:
    others = await host.caller(scopes=[scope for scope in Scope if scope != case.scope])
    assert (await send(others, case)).status_code == 403
    nobody = await host.bearer(None)
    assert (await send(nobody, case)).status_code == 401
    assert (await send(await host.caller(scopes=[case.scope]), case)).status_code == case.status


@pytest.mark.parametrize("case", CASES[1:], ids=str)
async def test_foreign_base_looks_like_an_absent_one(host: Host, document: dict[str, Any], case: Case) -> None:
    foreign = await host.stranger()
    seen, unseen = await send(foreign, case), await send(foreign, case, "/v1/knowledge-bases/no")
    assert seen.status_code == unseen.status_code == 404
    # The path of the request, and the id in the sentence about it.
    assert seen.text.replace("bases/kb", "bases/no").replace("'kb'", "'no'") == unseen.text
    assert len(await ask(host, "refund")) == 1


async def test_foreign_base_of_the_same_id_is_another_one(host: Host, document: dict[str, Any]) -> None:
    foreign = await host.stranger()
    assert (await foreign.put(BASE, json={"name": "Theirs"})).status_code == 200
    assert (await foreign.get(f"{BASE}/documents")).json()["items"] == []
    assert (await foreign.delete(BASE)).status_code == 204
    assert (await host.client.get(BASE)).json()["name"] == "Handbook"
    assert len(await ask(host, "refund")) == 1


async def test_cursor_of_another_base_is_refused(host: Host, document: dict[str, Any]) -> None:
    await put(host.client, "other", f"{BASE}/documents/a")
    await host.client.put("/v1/knowledge-bases/other", json={})
    cursor = (await host.client.get(f"{BASE}/documents?limit=1")).json()["next_cursor"]
    answer = await host.client.get("/v1/knowledge-bases/other/documents", params={"cursor": cursor})
    assert answer.json()["code"] == "cursor_invalid"


@pytest.mark.parametrize("deleted", ["document", "base"])
async def test_what_is_deleted_is_taken_back_from_open_runs(host: Host, document: dict[str, Any], deleted: str) -> None:
    """Deleting is a revocation (D-15, INV-10)."""
    run_id = (await host.run())["run_id"]
    bases = [{"kb_id": "kb", "operations": ["retrieve"]}]
    files = [{"file_id": document["file_key"], "operations": ["knowledge"], "source": "knowledge_base:kb"}]
    snapshot = {"resources": {"knowledge_bases": bases, "files": files}}
    async with host.engine.begin() as connection:
        await connection.execute(
            update(agent_run).where(agent_run.c.run_id == UUID(run_id)).values(authorization=snapshot)
        )
    assert (await host.client.delete(DOCUMENT if deleted == "document" else BASE)).status_code == 204
    async with host.engine.connect() as connection:
        taken = await connection.scalar(select(agent_run.c.revocations).where(agent_run.c.run_id == UUID(run_id)))
    expected = {"document": ("file", document["file_key"]), "base": ("knowledge_base", "kb")}[deleted]
    assert taken is not None
    assert [(entry["kind"], entry["id"]) for entry in taken] == [expected]
    rows = (await host.client.get(f"/v1/runs/{run_id}/events")).json()["items"]
    assert [row["data"]["id"] for row in rows if row["type"] == "host.grant_revoked"] == [expected[1]]
