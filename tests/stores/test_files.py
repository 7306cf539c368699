"""Files of a workspace."""

import hashlib
import os

import pytest
from sqlalchemy import text

from stores.errors import FileNotFound
from stores.files import MAX_FILE_BYTES, FileStore
from tests.fixtures.host import WORKSPACE, Host
from tests.stores.grants import run_with, taken_from


async def test_largest_file_is_read_whole_and_in_parts(host: Host) -> None:
    content = os.urandom(MAX_FILE_BYTES)
    async with host.engine.begin() as connection:
        files = FileStore(connection, WORKSPACE)
        made = await files.put("rules/a.bin", content, file_name="a.bin", mime_type="image/png")
        assert made == await files.get("rules/a.bin")
        assert await files.read("rules/a.bin") == content
        assert await files.read("rules/a.bin", offset=5_000_000, length=10) == content[5_000_000:5_000_010]
        assert await files.read("rules/a.bin", offset=MAX_FILE_BYTES, length=10) == b""
        with pytest.raises(ValueError, match="at most 10485760"):
            await files.put("rules/a.bin", content + b"x")
    assert (made.size_bytes, made.sha256) == (MAX_FILE_BYTES, hashlib.sha256(content).hexdigest())
    assert (made.file_name, made.mime_type) == ("a.bin", "image/png")


async def test_content_is_stored_uncompressed(host: Host) -> None:
    query = "SELECT attstorage = 'e' FROM pg_attribute WHERE attrelid = 'config_file'::regclass AND attname = 'content'"
    async with host.engine.connect() as connection:
        assert await connection.scalar(text(query))


async def test_file_is_replaced_as_a_whole(host: Host) -> None:
    async with host.engine.begin() as connection:
        files = FileStore(connection, WORKSPACE)
        await files.put("k", b"first", file_name="a.txt", mime_type="text/plain")
        made = await files.put("k", b"")
        assert (made.size_bytes, made.file_name, made.mime_type) == (0, None, None)
        assert await files.read("k") == b""


async def test_files_of_workspaces_are_apart_and_in_order(host: Host) -> None:
    async with host.engine.begin() as connection:
        files, theirs = FileStore(connection, WORKSPACE), FileStore(connection, "other")
        for key in ("b", "a"):
            await files.put(key, b"x")
        assert [file.file_key for file in await files.list(limit=5)] == ["a", "b"]
        assert await theirs.list(limit=5) == []
        for absent in (theirs.get("a"), theirs.read("a"), theirs.delete("a"), files.read("c")):
            with pytest.raises(FileNotFound):
                await absent


async def test_d_15_deleted_file_is_taken_back_from_open_runs(host: Host) -> None:
    run_id = await run_with(host, files=[{"file_id": "k"}])
    async with host.engine.begin() as connection:
        files = FileStore(connection, WORKSPACE)
        await files.put("k", b"x")
        await files.delete("k")
    assert await taken_from(host, run_id) == [("file", "k")]
