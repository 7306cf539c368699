"""Artifacts: metadata, bytes, ranges."""

import base64
import hashlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import ColumnElement, delete, func, update

from api.ranges import ByteRange, Unsatisfiable, requested_range
from stores.artifacts import ArtifactStore, NewFile
from stores.file_root import FileRoot
from stores.tables import artifact, artifact_blob
from tests.api.conftest import RUNNER, Host, NewHost, event

CONTENT = bytes(range(256)) * 3_000


@pytest.fixture
async def kept(host: Host) -> dict[str, Any]:
    """An artifact of 768,000 bytes that came inside an event."""
    return await keep(host, CONTENT)


async def keep(host: Host, content: bytes, **more: Any) -> dict[str, Any]:
    encoded = "data:image/png;base64," + base64.b64encode(content).decode()
    element = {"type": "image_base64", "image_base64": encoded} | more
    run = await host.run(input={"contents": [element]})
    return (await host.client.get(f"/v1/runs/{run['run_id']}/artifacts")).json()["items"][0]


def own(kept: dict[str, Any]) -> ColumnElement[bool]:
    return artifact.c.artifact_id == kept["artifact_id"]


async def test_metadata_tells_what_is_known_and_not_where(host: Host, kept: dict[str, Any]) -> None:
    read = (await host.client.get(f"/v1/artifacts/{kept['artifact_id']}")).json()
    assert read == kept
    assert (read["size_bytes"], read["mime_type"]) == (len(CONTENT), "image/png")
    assert read["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert read["created_at"].endswith("Z")
    assert not read.keys() & {"storage_type", "bot_id", "thread_id", "workspace_id"}


async def test_content_comes_whole_and_is_not_shown_in_a_page_of_ours(host: Host, kept: dict[str, Any]) -> None:
    answer = await host.client.get(f"/v1/artifacts/{kept['artifact_id']}/content")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    headers = answer.headers
    assert headers["content-type"] == "image/png"
    assert headers["content-length"] == str(len(CONTENT))
    assert headers["etag"] == f'"{kept["sha256"]}"'
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize(
    ("range_", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=100-100", 100, 101),
        ("bytes=700000-", 700_000, 768_000),
        ("bytes=-5", 767_995, 768_000),
        ("bytes=0-99999999", 0, 768_000),
        ("bytes=-99999999", 0, 768_000),
        ("bytes=200000-600000", 200_000, 600_001),
    ],
)
async def test_range_gives_that_part(host: Host, kept: dict[str, Any], range_: str, start: int, end: int) -> None:
    answer = await host.client.get(f"/v1/artifacts/{kept['artifact_id']}/content", headers={"Range": range_})
    assert (answer.status_code, answer.content) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/768000"


@pytest.mark.parametrize("range_", ["bytes=768000-", "bytes=999999-1000000", "bytes=-0"])
async def test_range_outside_cannot_be_satisfied(host: Host, kept: dict[str, Any], range_: str) -> None:
    answer = await host.client.get(f"/v1/artifacts/{kept['artifact_id']}/content", headers={"Range": range_})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == "bytes */768000"
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("range_", ["bytes=9-1", "bytes=a-b", "bytes=-", "lines=1-2", "bytes=0-1,5-6", "x"])
async def test_range_that_means_nothing_gives_everything(host: Host, kept: dict[str, Any], range_: str) -> None:
    answer = await host.client.get(f"/v1/artifacts/{kept['artifact_id']}/content", headers={"Range": range_})
    assert (answer.status_code, len(answer.content)) == (200, len(CONTENT))


async def test_client_that_has_the_bytes_gets_none(host: Host, kept: dict[str, Any]) -> None:
    path, tag = f"/v1/artifacts/{kept['artifact_id']}/content", f'"{kept["sha256"]}"'
    answer = await host.client.get(path, headers={"If-None-Match": f'"other", {tag}'})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    for condition, status in ((tag, 206), ('"other"', 200)):
        answer = await host.client.get(path, headers={"Range": "bytes=0-1", "If-Range": condition})
        assert answer.status_code == status


async def test_names_and_types_cannot_write_headers(host: Host) -> None:
    kept = await keep(host, b"x", file_name='a"\r\nX: y 日本.png')
    async with host.engine.begin() as connection:
        await connection.execute(update(artifact).where(own(kept)).values(mime_type="text/ünknown"))
    answer = await host.client.get(f"/v1/artifacts/{kept['artifact_id']}/content")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].endswith("a%22%0D%0AX%3A%20y%20%E6%97%A5%E6%9C%AC.png")


async def test_expired_artifact_is_gone(host: Host, kept: dict[str, Any]) -> None:
    async with host.engine.begin() as connection:
        await connection.execute(update(artifact).where(own(kept)).values(expires_at=func.now()))
    for path in ("", "/content"):
        assert (await host.client.get(f"/v1/artifacts/{kept['artifact_id']}{path}")).status_code == 404
    assert (await host.client.get(f"/v1/runs/{kept['run_id']}/artifacts")).json()["items"] == []


async def test_artifact_without_content_of_its_own_says_so(host: Host, kept: dict[str, Any]) -> None:
    async with host.engine.begin() as connection:
        await connection.execute(delete(artifact_blob).where(artifact_blob.c.workspace_id == host.workspace))
    answer = await host.client.get(f"/v1/artifacts/{kept['artifact_id']}/content")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_artifacts_of_a_run_are_paged(host: Host) -> None:
    contents = [{"type": "file_base64", "file_base64": base64.b64encode(bytes([n])).decode()} for n in range(5)]
    run = await host.run(input={"contents": contents})
    path, seen, cursor = f"/v1/runs/{run['run_id']}/artifacts", list[str](), None
    while True:
        page = (await host.client.get(path, params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [item["artifact_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (len(seen), seen) == (5, sorted(set(seen)))


async def test_file_artifact_is_served_as_long_as_it_is_in_its_folder(new_host: NewHost, tmp_path: Path) -> None:
    """H-F3: checked again by each read; nothing tells where it is."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_bytes(CONTENT)
    (root / "f").write_bytes(CONTENT)
    host = await new_host(file_root=root)
    run = await host.run()
    async with host.engine.begin() as connection:
        store = ArtifactStore(connection, host.workspace, FileRoot(root))
        new = NewFile(Path("f"), artifact_type="file", source="tool", run_id=UUID(run["run_id"]), runner_id=RUNNER)
        kept = await store.add_file(new)
    path = f"/v1/artifacts/{kept.artifact_id}"
    assert str(root) not in (await host.client.get(path)).text
    assert (await host.client.get(f"{path}/content")).content == CONTENT
    part = await host.client.get(f"{path}/content", headers={"Range": "bytes=300000-699999"})
    assert (part.status_code, part.content) == (206, CONTENT[300_000:700_000])
    (root / "f").unlink()
    (root / "f").symlink_to(tmp_path / "secret")
    answer = await host.client.get(f"{path}/content")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert str(tmp_path) not in answer.text


async def test_inline_content_is_kept_out_of_the_event_log(host: Host) -> None:
    await host.agent()
    await host.binding()
    await host.client.post(
        "/v1/events", json=event(input={"contents": [{"type": "image_base64", "image_base64": "Y2FuYXJ5"}]})
    )
    assert "Y2FuYXJ5" not in (await host.client.get("/v1/events/e1")).text


@pytest.mark.parametrize(
    ("header", "expected"), [(None, None), ("bytes=0-0", ByteRange(0, 1)), (" Bytes = 1-2 ", ByteRange(1, 3))]
)
def test_range_header_is_read(header: str | None, expected: ByteRange | None) -> None:
    assert requested_range(header, 10) == expected


def test_no_range_of_nothing_can_be_satisfied() -> None:
    for header in ("bytes=0-", "bytes=-1"):
        with pytest.raises(Unsatisfiable):
            requested_range(header, 0)
