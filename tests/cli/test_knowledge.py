"""The commands for knowledge bases."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_runs import page
from tests.client.stub import TIME, HostStub, answer, problem

TIMES = {"created_at": TIME, "updated_at": TIME}
BASE = TIMES | {"kb_id": "kb", "name": "Handbook", "description": None, "kb_type": "postgres", "config": {}}
DOCUMENT = TIMES | {
    "document_id": "a.md",
    "file_key": "k",
    "kb_id": "kb",
    "name": "a.md",
    "mime_type": "text/markdown",
    "size_bytes": 3,
    "sha256": "ab" * 32,
    "metadata": {},
    "chunk_count": 2,
}
ENTRY = {
    "id": "k:0",
    "content": [{"type": "text", "text": "Seven days.\x1b[31m"}],
    "score": 0.5,
    "metadata": {"document_id": "a.md"},
}


def receipt(outcome: str, **more: Any) -> Any:
    return answer(200, DOCUMENT | {"outcome": outcome} | more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents, and with what is none."""
    for name in ("a.md", "sub/b.html", "sub/c.JSON", "picture.png", ".hidden.md", ".git/d.md"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
    (tmp_path / "link.md").symlink_to("/etc/hostname")
    return tmp_path


async def test_base_is_put_from_options(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, BASE))
    outcome = await cli("knowledge", "put", "kb", "--name", "Handbook", "--passage", "400", "--overlap", "50")
    assert (host_stub.requests[0].method, host_stub.requests[0].path) == ("PUT", "/v1/knowledge-bases/kb")
    sent = host_stub.requests[0].json
    assert (sent["name"], sent["config"]) == ("Handbook", {"passage_characters": 400, "overlap_characters": 50})
    assert "`runhost knowledge upload kb FOLDER` fills it" in outcome.stderr


async def test_bases_and_documents_are_listed_shown_and_deleted(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page(BASE), answer(200, BASE), page(DOCUMENT), page(), answer(204, {}), answer(204, {}))
    assert (await cli("knowledge", "list")).stdout.splitlines()[1].split()[:3] == ["kb", "Handbook", "postgres"]
    assert (await cli("knowledge", "show", "kb", "--json")).documents[0]["name"] == "Handbook"
    listed = await cli("knowledge", "documents", "kb")
    assert listed.stdout.splitlines()[1].split()[:5] == ["a.md", "a.md", "text/markdown", "3", "2"]
    assert "has no document yet" in (await cli("knowledge", "documents", "kb")).stderr
    assert "a.md of kb is deleted" in (await cli("knowledge", "delete", "kb", "--document", "a.md")).stderr
    assert "Knowledge base kb is deleted" in (await cli("knowledge", "delete", "kb")).stderr
    assert [request.path for request in host_stub.requests[-2:]] == [
        "/v1/knowledge-bases/kb/documents/a.md",
        "/v1/knowledge-bases/kb",
    ]


async def test_folder_is_uploaded_file_by_file(cli: Cli, host_stub: HostStub, folder: Path) -> None:
    host_stub.play(receipt("created"), receipt("replaced"), receipt("unchanged"))

    outcome = await cli("knowledge", "upload", "kb", str(folder), "--metadata", '{"lang": "de"}', "--prefix", "x/")

    assert outcome.code == 0
    asked = [urlsplit(request.path) for request in host_stub.requests]
    assert [url.path.replace("%2F", "/") for url in asked] == [
        f"/v1/knowledge-bases/kb/documents/x/{name}" for name in ("a.md", "sub/b.html", "sub/c.JSON")
    ]
    assert {json.loads(parse_qs(url.query)["metadata"][0])["lang"] for url in asked} == {"de"}
    types = [request.headers["content-type"] for request in host_stub.requests]
    assert types == ["text/markdown", "text/html", "application/json"]
    assert outcome.stderr.splitlines() == [
        "[1/4] x/a.md: created, 2 passages",
        "[2/4] x/picture.png: skipped, its name ends with none of .htm, .html, .json, .markdown, .md, .txt; "
        "--type says what it is",
        "[3/4] x/sub/b.html: replaced, 2 passages",
        "[4/4] x/sub/c.JSON: unchanged, 2 passages",
        "kb: 1 created, 1 replaced, 1 skipped, 1 unchanged.",
    ]


async def test_refused_document_does_not_keep_the_others(cli: Cli, host_stub: HostStub, folder: Path) -> None:
    host_stub.play(problem(422, "invalid_argument"), receipt("created"), receipt("created"))

    outcome = await cli("knowledge", "upload", "kb", str(folder))

    assert outcome.code == 1
    assert "[1/4] a.md: refused, because of invalid_argument" in outcome.stderr
    assert "kb: 2 created, 1 refused, 1 skipped." in outcome.stderr


async def test_base_that_is_not_there_ends_an_upload(cli: Cli, host_stub: HostStub, folder: Path) -> None:
    host_stub.play(problem(404, "not_found"))
    outcome = await cli("knowledge", "upload", "kb", str(folder))
    assert (outcome.code, len(host_stub.requests)) == (1, 1)


async def test_single_file_is_uploaded_under_its_name(cli: Cli, host_stub: HostStub, tmp_path: Path) -> None:
    (tmp_path / "NOTES").write_bytes(b"\xef\xbb\xbftext\r\n")
    host_stub.play(receipt("created"))
    outcome = await cli("knowledge", "upload", "kb", str(tmp_path / "NOTES"), "--type", "text/plain", "--json")
    assert outcome.documents[0]["outcome"] == "created"
    assert host_stub.requests[0].path == "/v1/knowledge-bases/kb/documents/NOTES"
    assert (host_stub.requests[0].body, host_stub.requests[0].headers["content-type"]) == (
        b"\xef\xbb\xbftext\r\n",
        "text/plain",
    )


async def test_answers_are_shown_without_what_a_terminal_obeys(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, {"items": [ENTRY]}), answer(200, {"items": [ENTRY]}), answer(200, {"items": []}))
    shown = await cli("knowledge", "ask", "kb", "how long?", "--top", "3", "--filter", '{"lang": "en"}')
    assert host_stub.requests[0].json == {"query_text": "how long?", "top_k": 3, "filters": {"lang": "en"}}
    assert shown.stdout.startswith("0.50  a.md\nSeven days.")
    assert "\x1b" not in shown.stdout
    assert (await cli("knowledge", "ask", "kb", "how long?", "--json")).documents == [ENTRY]
    assert "has nothing about this" in (await cli("knowledge", "ask", "kb", "x")).stderr
