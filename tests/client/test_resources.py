"""The calls for what agents can be granted, against the real API."""

import uuid
from collections.abc import AsyncIterator

import pytest

from runhost.client import ApiProblem, ModelRequest, RunhostClient, SkillRequest, ToolServerRequest
from tests.client.stub import FAST, KEY, HostStub, answer
from tests.fixtures.live_host import LiveHost

MODEL = ModelRequest(base_url="https://models.example/v1", api_key="sk-very-secret", default_args={"temperature": 0})


@pytest.fixture
async def client(live_host: LiveHost) -> AsyncIterator[RunhostClient]:
    async with RunhostClient(live_host.url, live_host.key, retry=FAST) as client:
        yield client


@pytest.fixture
def name() -> str:
    """An id of this test, with everything that an id may hold."""
    return f"x/{uuid.uuid4().hex} ?#%你"


async def test_model_is_put_read_listed_and_deleted(client: RunhostClient, name: str) -> None:
    made = await client.put_model(name, MODEL)

    assert made == await client.get_model(name)
    assert (made.model_id, made.has_api_key, made.default_args) == (name, True, {"temperature": 0})
    assert name in [model.model_id for model in (await client.list_models(limit=200)).items]
    await client.delete_model(name)
    with pytest.raises(ApiProblem, match="not_found"):
        await client.get_model(name)


async def test_key_that_is_not_set_stays_and_none_takes_it_away(client: RunhostClient, name: str) -> None:
    await client.put_model(name, MODEL)

    kept = await client.put_model(name, ModelRequest(base_url=MODEL.base_url))
    assert kept.has_api_key
    gone = await client.put_model(name, ModelRequest(base_url=MODEL.base_url, api_key=None))
    assert not gone.has_api_key


def test_secrets_are_in_no_repr() -> None:
    server = ToolServerRequest(transport="stdio", command=["x"], env={"A": "very-secret"}, headers={"B": "very-secret"})

    assert "very-secret" not in repr(MODEL) + repr(server)


async def test_tool_server_tells_its_tools(client: RunhostClient) -> None:
    server_id = f"s-{uuid.uuid4().hex[:8]}"
    request = ToolServerRequest(transport="streamable_http", url="https://tools.example", headers={"X-Key": "secret"})
    made = await client.put_tool_server(server_id, request)
    assert (made.is_stale, made.header_names) == (True, ["X-Key"])

    (tool,) = (await client.refresh_tool_server(server_id)).items
    assert [tool] == (await client.list_tools(server_id=server_id)).items
    assert (await client.get_tool(tool.tool_name)).parameters["type"] == "object"
    assert not (await client.get_tool_server(server_id)).is_stale
    assert server_id in [server.server_id for server in (await client.list_tool_servers(limit=200)).items]
    await client.delete_tool_server(server_id)
    assert (await client.list_tools(server_id=server_id)).items == []


async def test_skill_is_put_read_listed_and_deleted(client: RunhostClient, name: str) -> None:
    made = await client.put_skill(name, SkillRequest(instructions="Look \0 twice.", description="Looks."))

    assert made == await client.get_skill(name)
    assert made.instructions == "Look \0 twice."
    (listed,) = [skill for skill in (await client.list_skills(limit=200)).items if skill.skill_name == name]
    assert listed.sha256 == made.sha256
    await client.delete_skill(name)


async def test_file_is_put_read_listed_and_deleted(client: RunhostClient, name: str) -> None:
    content = bytes(range(256)) * 20_000
    made = await client.put_file(name, content, file_name="a b.bin", mime_type="application/json")

    assert made == await client.get_file(name)
    assert (made.size_bytes, made.file_name, made.mime_type) == (len(content), "a b.bin", "application/json")
    assert await client.read_file(name) == content
    assert name in [file.file_key for file in (await client.list_files(limit=200)).items]
    await client.delete_file(name)
    with pytest.raises(ApiProblem, match="not_found"):
        await client.read_file(name)


async def test_file_without_a_type_is_sent_without_one(host_stub: HostStub) -> None:
    host_stub.play(answer(404, {"code": "not_found"}))

    async with RunhostClient(host_stub.url, KEY, retry=FAST) as client:
        with pytest.raises(ApiProblem):
            await client.put_file("k", b"x")

    assert "content-type" not in host_stub.requests[0].headers
