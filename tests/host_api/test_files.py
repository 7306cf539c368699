"""Files of the config and documents of knowledge bases, as far as they are granted (PROTOCOL 9.8, D-13)."""

import base64
from typing import Any

import pytest

from host_api.authorization import Authorization
from host_api.errors import HostCallError
from host_api.methods.files import get_file
from runhost.protocol import ErrorCode
from stores.errors import NotFound
from stores.files import FileStore
from stores.knowledge import KnowledgeStore
from stores.knowledge_documents import DocumentStore, prepare_document
from stores.passages import PassageSizes
from tests.host_api.conftest import GrantedRun

CONTENT = bytes(range(256))
TEXT = "knowledge 知识"


async def put_file(run: GrantedRun, key: str = "f1", workspace_id: str = "w1") -> None:
    async with run.host.engine.begin() as connection:
        await FileStore(connection, workspace_id).put(key, CONTENT, file_name="名.bin", mime_type="image/png")


async def put_document(run: GrantedRun, workspace_id: str = "w1") -> str:
    """Upload a document; returns what it is granted by."""
    base: dict[str, Any] = {"name": "Handbook", "description": None, "kb_type": "postgres", "config": {}}
    document = prepare_document("d1", TEXT.encode(), "text/plain", PassageSizes(200, 20), name="d.txt", metadata={})
    async with run.host.engine.begin() as connection:
        await KnowledgeStore(connection, workspace_id).put("kb1", base)
        row, _ = await DocumentStore(connection, workspace_id, "kb1").put(document)
    return row.file_key


def granting(run: GrantedRun, file_id: str, *operations: str) -> Authorization:
    """Return the run's snapshot with one file."""
    resources = run.authorization.resources.model_dump() | {
        "files": [{"file_id": file_id, "operations": list(operations)}]
    }
    return Authorization.model_validate(run.authorization.model_dump() | {"resources": resources})


@pytest.mark.parametrize("operations", [["config"], ["config", "knowledge"], []], ids=str)
async def test_file_of_the_config_is_read_whole(run: GrantedRun, operations: list[str]) -> None:
    await put_file(run)
    read = await run.ask(get_file, file_key="f1", authorization=granting(run, "f1", *operations))
    assert base64.b64decode(read.content_base64) == CONTENT
    assert (read.file_key, read.file_name, read.mime_type, read.size_bytes) == ("f1", "名.bin", "image/png", 256)


@pytest.mark.parametrize("operations", [["knowledge"], ["config", "knowledge"], []], ids=str)
async def test_d_13_document_is_read_as_it_was_uploaded(run: GrantedRun, operations: list[str]) -> None:
    key = await put_document(run)
    read = await run.ask(get_file, file_key=key, authorization=granting(run, key, *operations))
    assert base64.b64decode(read.content_base64) == TEXT.encode()
    assert (read.file_key, read.file_name, read.mime_type) == (key, "d.txt", "text/plain")


async def test_operation_opens_its_own_kind_alone(run: GrantedRun) -> None:
    await put_file(run)
    key = await put_document(run)
    for file_id, operation in (("f1", "knowledge"), (key, "config")):
        with pytest.raises(NotFound):
            await run.ask(get_file, file_key=file_id, authorization=granting(run, file_id, operation))


async def test_granted_file_of_another_workspace_is_not_there(run: GrantedRun) -> None:
    await put_file(run, workspace_id="w2")
    key = await put_document(run, workspace_id="w2")
    for file_id in ("f1", key):
        with pytest.raises(NotFound):
            await run.ask(get_file, file_key=file_id, authorization=granting(run, file_id))


async def test_file_that_is_not_granted_is_refused_like_one_that_is_nowhere(run: GrantedRun) -> None:
    await put_file(run, "f2")
    said: set[str] = set()
    for key in ("f2", "nowhere"):
        with pytest.raises(HostCallError) as refusal:
            await run.ask(get_file, file_key=key)
        assert refusal.value.code is ErrorCode.UNAUTHORIZED
        said.add(str(refusal.value).replace(repr(key), "..."))
    assert len(said) == 1
