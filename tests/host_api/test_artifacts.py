"""A run reads its own artifacts and those of its conversation (PROTOCOL 9.6, HOST 11)."""

import base64
import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update
from structlog.testing import capture_logs

from host_api.methods.artifacts import artifact_metadata, artifact_read, artifact_read_range
from host_api.methods.history import history_page
from runhost.protocol import ArtifactReadResult, ArtifactRef
from stores.artifacts import ArtifactStore, NewFile
from stores.errors import ArtifactNotFound
from stores.file_root import FileRefused, FileRoot
from stores.tables import artifact, artifact_blob
from tests.host_api.conftest import ELSEWHERE, GrantedRun, NewRun

CONTENT = bytes(range(256)) * 6_000  # 1.46 MiB, between the two limits of a read
READS = (artifact_metadata, artifact_read, artifact_read_range)


def image(content: bytes) -> dict[str, Any]:
    return {"type": "image_base64", "image_base64": "data:image/png;base64," + base64.b64encode(content).decode()}


async def with_content(new_run: NewRun, content: bytes = CONTENT, **event: Any) -> tuple[GrantedRun, str]:
    """Return a run and the id of an artifact that came with its event."""
    run = await new_run(input={"contents": [image(content)]}, **event)
    async with run.host.engine.connect() as connection:
        (kept,) = await ArtifactStore(connection, run.row.workspace_id).list_of_run(run.run_id, limit=10)
    return run, kept.artifact_id


async def change(run: GrantedRun, artifact_id: str, **columns: Any) -> None:
    async with run.host.engine.begin() as connection:
        await connection.execute(update(artifact).where(artifact.c.artifact_id == artifact_id).values(**columns))


async def add_file(run: GrantedRun, path: str | Path, **more: Any) -> ArtifactRef:
    """Register a file as an artifact of a run."""
    row, root = run.row, run.services.file_root
    new = NewFile(
        path=Path(path),
        artifact_type="file",
        source="tool",
        run_id=run.run_id,
        runner_id=row.runner_id,
        bot_id=row.bot_id,
        conversation_id=row.conversation_id,
        thread_id=row.thread_id,
    )
    async with run.host.engine.begin() as connection:
        store = ArtifactStore(connection, row.workspace_id, FileRoot(root) if root else None)
        return await store.add_file(replace(new, **more))


def content_of(part: ArtifactReadResult) -> bytes:
    assert part.content_base64 is not None
    content = base64.b64decode(part.content_base64)
    assert part.length == len(content)
    return content


async def refusals(run: GrantedRun, artifact_id: str) -> set[str]:
    """Return what every method says to an artifact that it must not give, without the id."""
    said: set[str] = set()
    for method in READS:
        with pytest.raises(ArtifactNotFound) as refusal:
            await run.ask(method, artifact_id=artifact_id)
        said.add(str(refusal.value).replace(artifact_id, "..."))
    return said


async def test_metadata_tells_what_is_known_and_not_where(new_run: NewRun) -> None:
    run, artifact_id = await with_content(new_run)
    read = await run.ask(artifact_metadata, artifact_id=artifact_id)
    assert read.model_dump(exclude={"created_at"}) == {
        "artifact_id": artifact_id,
        "artifact_type": "image",
        "mime_type": "image/png",
        "name": None,
        "size_bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "source": "platform",
        "conversation_id": "c1",
        "run_id": str(run.run_id),
        "runner_id": run.row.runner_id,
        "expires_at": None,
        "metadata": {"input_attachment": True},
    }


async def test_read_gives_one_mebibyte_unless_told(new_run: NewRun) -> None:
    run, artifact_id = await with_content(new_run)
    first = await run.ask(artifact_read, artifact_id=artifact_id)
    assert content_of(first) == CONTENT[: 1024 * 1024]
    assert (first.offset, first.has_more, first.mime_type, first.size_bytes) == (0, True, "image/png", len(CONTENT))
    rest = await run.ask(artifact_read, artifact_id=artifact_id, offset=first.length)
    assert content_of(first) + content_of(rest) == CONTENT
    assert not rest.has_more


@pytest.mark.parametrize("storage", ["blob", "file"])
async def test_part_is_what_was_asked_for(new_run: NewRun, storage: str) -> None:
    run, artifact_id = await with_content(new_run)
    if storage == "file":
        assert run.services.file_root is not None
        (run.services.file_root / "f").write_bytes(CONTENT)
        artifact_id = (await add_file(run, "f")).artifact_id
    size = len(CONTENT)
    for offset, length in (
        (0, 1),
        (100, 1_000),
        (size - 1, 5),
        (size, 5),
        (size + 1, 5),
        (2**31, 5),
        (2**63 - 1, 5),
        (0, 2**63),
    ):
        for method, name in ((artifact_read, "limit"), (artifact_read_range, "length")):
            params: dict[str, Any] = {"artifact_id": artifact_id, "offset": offset, name: length}
            part = await run.ask(method, **params)
            assert content_of(part) == CONTENT[offset : offset + length]
            assert (part.offset, part.has_more) == (offset, offset + length < size)
    assert content_of(await run.ask(artifact_read_range, artifact_id=artifact_id)) == CONTENT[:65_536]


async def test_read_gives_at_most_ten_mebibytes(run: GrantedRun) -> None:
    assert run.services.file_root is not None
    (run.services.file_root / "f").write_bytes(bytes(11 * 1024 * 1024))
    reference = await add_file(run, "f")
    for limit in (2**40, 10 * 1024 * 1024):
        part = await run.ask(artifact_read, artifact_id=reference.artifact_id, offset=1, limit=limit)
        assert (part.length, part.has_more) == (10 * 1024 * 1024, True)


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_pm_12_foreign_artifact_answers_like_an_unknown_one(run: GrantedRun, new_run: NewRun, where: str) -> None:
    foreign, artifact_id = await with_content(new_run, CONTENT, **ELSEWHERE[where])
    assert await refusals(run, artifact_id) == await refusals(run, "unknown")
    _, own = await with_content(new_run)
    assert await refusals(foreign, own) == await refusals(foreign, "unknown")


async def test_artifact_of_an_earlier_run_of_the_conversation_is_read(new_run: NewRun) -> None:
    _, artifact_id = await with_content(new_run, b"x", thread_id="t1")
    later = await new_run(thread_id="t1")
    assert content_of(await later.ask(artifact_read, artifact_id=artifact_id)) == b"x"


async def test_pm_12_artifact_without_a_conversation_is_its_own_runs_alone(run: GrantedRun, new_run: NewRun) -> None:
    alone, artifact_id = await with_content(new_run, b"x", conversation_id=None)
    other = await new_run(conversation_id=None)
    assert content_of(await alone.ask(artifact_read, artifact_id=artifact_id)) == b"x"
    assert await refusals(run, artifact_id) == await refusals(other, artifact_id) == await refusals(run, "unknown")


async def test_pm_12_expired_artifact_is_absent(new_run: NewRun) -> None:
    """H-F5."""
    run, artifact_id = await with_content(new_run)
    now = datetime.now(UTC)
    await change(run, artifact_id, expires_at=now + timedelta(hours=1))
    assert (await run.ask(artifact_metadata, artifact_id=artifact_id)).expires_at == int(now.timestamp()) + 3600
    await change(run, artifact_id, expires_at=now)
    assert await refusals(run, artifact_id) == await refusals(run, "unknown")


async def test_blob_that_is_gone_has_no_content(new_run: NewRun) -> None:
    run, artifact_id = await with_content(new_run)
    async with run.host.engine.begin() as connection:
        await connection.execute(delete(artifact_blob))
    with pytest.raises(ArtifactNotFound):
        await run.ask(artifact_read, artifact_id=artifact_id)


@pytest.mark.parametrize(
    ("storage_type", "storage_key"),
    [("url", "https://example.com/a\x00b"), ("platform_ref", "日本-1"), ("metadata_only", None)],
)
async def test_h_f6_content_that_is_elsewhere_is_named(
    new_run: NewRun, storage_type: str, storage_key: str | None
) -> None:
    run, artifact_id = await with_content(new_run)
    await change(run, artifact_id, storage_type=storage_type, storage_key=storage_key)
    for method in (artifact_read, artifact_read_range):
        part = await run.ask(method, artifact_id=artifact_id)
        assert (part.content_base64, part.length, part.has_more) == (None, None, False)
        assert part.file_key == storage_key


async def test_h_f8_input_is_an_artifact_wherever_its_content_is(new_run: NewRun) -> None:
    """Base64 and `data:` addresses are kept, other addresses and ids of the platform are noted."""
    address = "https://example.com/cat.png"
    run = await new_run(
        input={
            "contents": [
                {"type": "image_url", "image_url": {"url": "DATA:image/gif;base64,R0lG"}},
                {"type": "file_url", "file_url": "data:text/plain,a%20b", "file_name": "a.txt"},
                {"type": "file", "file_base64": "Yg=="},
                {"type": "image_url", "image_url": {"url": address}},
                {"type": "file", "file_url": address},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,???"}},
            ],
            "attachments": [{"artifact_id": "p1", "artifact_type": "voice", "size_bytes": 9}],
        }
    )
    item = (await run.ask(history_page, include_artifacts=True)).items[0]
    parts = [await run.ask(artifact_read, artifact_id=ref["artifact_id"]) for ref in item.artifact_refs]
    assert [(part.mime_type, part.content_base64, part.file_key) for part in parts] == [
        (None, None, "p1"),
        ("image/gif", "R0lG", None),
        ("text/plain", base64.b64encode(b"a b").decode(), None),
        (None, "Yg==", None),
        (None, None, address),
    ]
    known = await run.ask(artifact_metadata, artifact_id="p1")
    assert (known.artifact_type, known.size_bytes, known.metadata["platform_ref_id"]) == ("voice", 9, "p1")
    assert ";base64," not in item.model_dump_json(include={"content", "content_json"})
    assert address in item.model_dump_json(include={"content_json"})


async def test_pm_12_attachment_that_names_a_foreign_artifact_opens_nothing(new_run: NewRun) -> None:
    _, artifact_id = await with_content(new_run, conversation_id="c2")
    run = await new_run(input={"attachments": [{"artifact_id": artifact_id}]})
    assert await refusals(run, artifact_id) == await refusals(run, "unknown")


async def test_h_f3_file_is_read_where_it_is(run: GrantedRun) -> None:
    root = run.services.file_root
    assert root is not None
    (root / "deep").mkdir()
    (root / "deep" / "f").write_bytes(b"content")
    reference = await add_file(run, root / "deep" / "f", name="a\x00.txt")
    assert (reference.size_bytes, reference.sha256) == (7, hashlib.sha256(b"content").hexdigest())
    metadata = await run.ask(artifact_metadata, artifact_id=reference.artifact_id)
    assert (metadata.size_bytes, metadata.name, metadata.source) == (7, "a\x00.txt", "tool")
    assert "deep" not in metadata.model_dump_json()
    part = await run.ask(artifact_read, artifact_id=reference.artifact_id, offset=3)
    assert (content_of(part), part.file_key) == (b"tent", None)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", ".", "missing"])
async def test_h_f3_path_out_of_the_root_is_not_registered(run: GrantedRun, path: str) -> None:
    with pytest.raises(FileRefused):
        await add_file(run, path)


async def test_h_f3_file_is_checked_again_by_every_read(run: GrantedRun, tmp_path: Path) -> None:
    """A link that came later, a path that somebody wrote into the table: refused, and logged without the path."""
    root = run.services.file_root
    assert root is not None
    (tmp_path / "secret").write_bytes(b"content")
    (root / "f").write_bytes(b"content")
    artifact_id = (await add_file(run, "f")).artifact_id
    (root / "f").unlink()
    (root / "f").symlink_to(tmp_path / "secret")
    for key in ("f", "../secret", str(tmp_path / "secret"), "."):
        await change(run, artifact_id, storage_key=key)
        with capture_logs() as logs, pytest.raises(ArtifactNotFound):
            await run.ask(artifact_read, artifact_id=artifact_id)
        (line,) = logs
        assert (line["event"], line["artifact_id"]) == ("artifact.file_refused", artifact_id)
        assert "secret" not in repr(line)
        assert str(root) not in repr(line)


async def test_host_without_a_folder_of_files_has_no_content(run: GrantedRun) -> None:
    assert run.services.file_root is not None
    (run.services.file_root / "f").write_bytes(b"content")
    artifact_id = (await add_file(run, "f")).artifact_id
    without = replace(run, services=replace(run.services, file_root=None))
    with pytest.raises(ArtifactNotFound):
        await without.ask(artifact_read, artifact_id=artifact_id)
    with pytest.raises(FileRefused):
        await add_file(without, "f")
