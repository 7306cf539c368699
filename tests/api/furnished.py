"""A workspace with one of everything."""

from stores.journal import Projections
from tests.api.conftest import Host, event

CONTENT, DIGEST = b"bytes", "77af778b51abd4a3c51c5ddd97204a9c3ae614ebccb75a606c3b6865aed6744e"
REGISTERED = (
    ("/v1/models/m1", {"base_url": "https://models.example/v1"}),
    ("/v1/tool-servers/s1", {"transport": "streamable_http", "url": "https://tools.example"}),
    ("/v1/skills/k1", {"instructions": "x"}),
    ("/v1/files/f1", {"any": "content"}),
    ("/v1/knowledge-bases/kb1", {}),
    ("/v1/knowledge-bases/kb1/documents/d1", {"any": "content"}),
)


async def furnish(host: Host) -> dict[str, str]:
    """Put one of everything into the workspace, with a run that has ended; return the ids."""
    await host.agent()
    await host.binding()
    run_id = (await host.client.post("/v1/events", json=event())).json()["run_id"]
    writer = await host.writer(run_id)
    artifact = {
        "position": 1,
        "artifact_id": "a1",
        "artifact_type": "file",
        "size_bytes": len(CONTENT),
        "sha256": DIGEST,
        "source": "runner",
        "storage_type": "blob",
        "metadata": {},
    }
    await writer.rows(
        [("artifact.created", {"artifact_id": "a1"})],
        projections=Projections(blobs=[(DIGEST, CONTENT)], artifacts=[artifact]),
    )
    await writer.complete()
    for path, body in REGISTERED:
        assert (await host.client.put(path, json=body)).status_code == 200
    assert (await host.client.post("/v1/tool-servers/s1/refresh")).status_code == 200
    return {
        "run": run_id,
        "event": "e1",
        "artifact": "a1",
        "agent": "echo",
        "binding": "all",
        "model": "m1",
        "server": "s1",
        "tool": "s1__search",
        "skill": "k1",
        "file": "f1",
        "base": "kb1",
        "document": "d1",
    }
