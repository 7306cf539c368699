"""Models, tool servers, tools, skills and files; who sees them is in `test_access`."""

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from api.body_limits import BodyLimits
from providers.errors import ProviderError
from providers.mcp import McpToolProvider, StdioPolicy
from runhost.protocol.host_api import MAX_FUNCTIONS, ToolDetail
from stores.files import MAX_FILE_BYTES
from tests.api.conftest import Host, NewHost
from tests.api.fake_tools import SEARCH, FakeTools
from tests.providers import tool_server

SECRET = "sk-very-secret-value"
MODEL = {"base_url": "https://models.example/v1"}
HTTP_SERVER = {"transport": "streamable_http", "url": "https://tools.example/mcp"}
STDIO_SERVER = {"transport": "stdio", "command": ["tools", "--serve"]}
SKILL = {"instructions": "Look twice."}


def fakes(host: Host) -> FakeTools:
    return cast("FakeTools", host.dependencies.tools)


async def put(host: Host, path: str, body: Any) -> dict[str, Any]:
    answer = await host.client.put(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestModels:
    async def test_names_default_to_the_id(self, host: Host) -> None:
        made = await put(host, "/v1/models/org/gpt-x", MODEL)
        assert made == (await host.client.get("/v1/models/org/gpt-x")).json()
        times = {"created_at": made["created_at"], "updated_at": made["updated_at"]}
        assert made == times | {
            "model_id": "org/gpt-x",
            "name": "org/gpt-x",
            "model_type": "llm",
            "provider": "openai",
            "base_url": "https://models.example/v1",
            "model_name": "org/gpt-x",
            "has_api_key": False,
            "context_window_tokens": None,
            "default_args": {},
            "timeout_seconds": 120.0,
            "enabled": True,
        }

    async def test_model_is_replaced_as_a_whole_but_for_its_key(self, host: Host) -> None:
        first = {"name": "A", "api_key": SECRET, "context_window_tokens": 9, "default_args": {"t": 1}, "enabled": False}
        await put(host, "/v1/models/m", MODEL | first)
        read = await put(host, "/v1/models/m", MODEL)
        assert (read["name"], read["context_window_tokens"], read["default_args"]) == ("m", None, {})
        assert (read["enabled"], read["has_api_key"]) == (True, True)
        assert not (await put(host, "/v1/models/m", MODEL | {"api_key": None}))["has_api_key"]

    async def test_key_is_not_kept_for_another_address(self, host: Host) -> None:
        await put(host, "/v1/models/m", MODEL | {"api_key": SECRET})
        answer = await host.client.put("/v1/models/m", json={"base_url": "https://elsewhere.example"})
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_argument")
        assert "'m'" in answer.json()["detail"]
        assert (await host.client.get("/v1/models/m")).json()["base_url"] == MODEL["base_url"]


class TestToolServers:
    async def test_refresh_learns_the_tools(self, host: Host) -> None:
        made = await put(host, "/v1/tool-servers/s", HTTP_SERVER | {"headers": {"X-Token": SECRET}})
        assert (made["is_stale"], made["refreshed_at"], made["header_names"]) == (True, None, ["X-Token"])
        answer = await host.client.post("/v1/tool-servers/s/refresh")
        listed = (await host.client.get("/v1/tools")).json()
        assert answer.json()["items"] == listed["items"]
        (summary,) = listed["items"]
        assert (summary["tool_name"], summary["remote_name"], summary["server_id"]) == ("s__search", "search", "s")
        tool = (await host.client.get("/v1/tools/s__search")).json()
        assert tool == summary | {"parameters": SEARCH.parameters}
        server = (await host.client.get("/v1/tool-servers/s")).json()
        assert (server["is_stale"], server["last_error"]) == (False, None)
        asked = fakes(host).asked[-1]
        assert (asked.workspace_id, asked.url, asked.headers) == (host.workspace, made["url"], {"X-Token": SECRET})

    async def test_tools_are_paged_and_filtered_by_server(self, host: Host) -> None:
        offered: list[ToolDetail] = [ToolDetail(tool_name=name) for name in "cab"]
        for server in ("s1", "s2"):
            fakes(host).offers[host.workspace, server] = offered
            await put(host, f"/v1/tool-servers/{server}", HTTP_SERVER)
            await host.client.post(f"/v1/tool-servers/{server}/refresh")
        names, query = [], {"limit": "2", "server_id": "s2"}
        while True:
            page = (await host.client.get("/v1/tools", params=query)).json()
            names += [tool["tool_name"] for tool in page["items"]]
            if not page["has_more"]:
                break
            query["cursor"] = page["next_cursor"]
        assert names == ["s2__a", "s2__b", "s2__c"]
        assert len((await host.client.get("/v1/tools")).json()["items"]) == 6

    @pytest.mark.parametrize(
        ("failure", "reason", "retryable"),
        [
            (ProviderError("The server refuses the key.", retryable=False), "refuses the key", False),
            (ProviderError("Nobody answers.", retryable=True), "Nobody answers", True),
            ([ToolDetail(tool_name=str(n)) for n in range(MAX_FUNCTIONS + 1)], "1001 tools; at most 1000", False),
            ([ToolDetail(tool_name="big", description="x" * 300_000)], "'big'", False),
        ],
        ids=["refused", "away", "too many", "too large"],
    )
    async def test_d_19_failed_refresh_keeps_what_was_known(
        self, host: Host, failure: Any, reason: str, retryable: bool
    ) -> None:
        await put(host, "/v1/tool-servers/s", HTTP_SERVER)
        await host.client.post("/v1/tool-servers/s/refresh")
        fakes(host).offers[host.workspace, "s"] = failure
        answer = await host.client.post("/v1/tool-servers/s/refresh")
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["retryable"]) == (502, "runtime_error", retryable)
        assert "'s'" in problem["detail"]
        assert reason in problem["detail"]
        server = (await host.client.get("/v1/tool-servers/s")).json()
        assert server["is_stale"]
        assert reason in server["last_error"]
        assert (await host.client.get("/v1/tools/s__search")).status_code == 200

    async def test_server_that_is_changed_while_it_is_asked_keeps_its_tools(self, new_host: NewHost) -> None:
        asked, changed = asyncio.Event(), asyncio.Event()

        class Slow(FakeTools):
            async def list_tools(self, address: Any) -> list[ToolDetail]:
                asked.set()
                await changed.wait()
                return [SEARCH]

        host = await new_host(tools=Slow())
        await put(host, "/v1/tool-servers/s", HTTP_SERVER)
        refresh = asyncio.create_task(host.client.post("/v1/tool-servers/s/refresh"))
        await asked.wait()
        await put(host, "/v1/tool-servers/s", HTTP_SERVER | {"url": "https://elsewhere.example"})
        changed.set()
        answer = await refresh
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_argument")
        assert (await host.client.get("/v1/tools")).json()["items"] == []

    async def test_real_server_is_asked_and_one_that_is_not_allowed_is_not_started(
        self, new_host: NewHost, tmp_path: Path
    ) -> None:
        program = (sys.executable, tool_server.__file__)
        async with McpToolProvider(StdioPolicy((program,))) as tools:
            host = await new_host(tools=tools)
            await put(host, "/v1/tool-servers/s", {"transport": "stdio", "command": [*program, str(tmp_path)]})
            answer = await host.client.post("/v1/tool-servers/s/refresh")
            assert (answer.status_code, len(answer.json()["items"])) == (200, tool_server.TOOLS)
            assert (await host.client.get("/v1/tools/s__echo")).json()["human_desc"] == "Echo"
            await put(host, "/v1/tool-servers/other", {"transport": "stdio", "command": ["sh", "-c", "true"]})
            answer = await host.client.post("/v1/tool-servers/other/refresh")
            assert (answer.status_code, "RUNHOST_MCP_STDIO_COMMANDS" in answer.json()["detail"]) == (502, True)

    async def test_transport_can_be_changed(self, host: Host) -> None:
        await put(host, "/v1/tool-servers/s", STDIO_SERVER | {"env": {"TOKEN": SECRET}})
        answer = await host.client.put("/v1/tool-servers/s", json=HTTP_SERVER)
        read = answer.json()
        assert (read["transport"], read["command"], read["env_names"]) == ("streamable_http", [], [])

    async def test_deleting_a_server_deletes_its_tools(self, host: Host) -> None:
        await put(host, "/v1/tool-servers/s", HTTP_SERVER)
        await host.client.post("/v1/tool-servers/s/refresh")
        assert (await host.client.delete("/v1/tool-servers/s")).status_code == 204
        assert (await host.client.get("/v1/tools/s__search")).status_code == 404
        assert (await host.client.delete("/v1/tool-servers/s")).status_code == 404


class TestSkills:
    async def test_list_leaves_the_instructions_out(self, host: Host) -> None:
        made = await put(host, "/v1/skills/look", SKILL | {"display_name": "Look", "description": "Looks."})
        assert (await host.client.get("/v1/skills/look")).json() == made
        (listed,) = (await host.client.get("/v1/skills")).json()["items"]
        assert listed | {"instructions": "Look twice."} == made
        assert made["sha256"] == hashlib.sha256(b"Look twice.").hexdigest()

    async def test_skill_is_replaced_as_a_whole(self, host: Host) -> None:
        await put(host, "/v1/skills/look", SKILL | {"display_name": "Look", "description": "Looks."})
        read = await put(host, "/v1/skills/look", {"instructions": "other"})
        assert (read["display_name"], read["description"], read["instructions"]) == (None, None, "other")


class TestFiles:
    async def test_file_comes_back_as_it_was_sent(self, host: Host) -> None:
        content = bytes(range(256))
        answer = await host.client.put(
            "/v1/files/rules/a.json",
            params={"file_name": "règles.json"},
            content=content,
            headers={"Content-Type": "application/json; x=y"},
        )
        made = answer.json()
        assert (made["file_key"], made["file_name"], made["size_bytes"]) == ("rules/a.json", "règles.json", 256)
        assert (await host.client.get("/v1/files/rules/a.json")).json() == made
        read = await host.client.get("/v1/files/rules/a.json/content")
        assert (read.content, read.headers["content-type"]) == (content, "application/json; x=y")
        assert read.headers["content-disposition"] == "attachment; filename*=UTF-8''r%C3%A8gles.json"
        assert read.headers["x-content-type-options"] == "nosniff"
        part = await host.client.get("/v1/files/rules/a.json/content", headers={"Range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, content[10:20])
        assert part.headers["content-range"] == "bytes 10-19/256"
        outside = await host.client.get("/v1/files/rules/a.json/content", headers={"Range": "bytes=256-"})
        assert (outside.status_code, outside.headers["content-range"]) == (416, "bytes */256")
        known = await host.client.get("/v1/files/rules/a.json/content", headers={"If-None-Match": read.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")

    async def test_key_that_would_be_read_as_the_content_of_another_is_refused(self, host: Host) -> None:
        answer = await host.client.put("/v1/files/rules/content", content=b"x")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "file_key")

    async def test_empty_file_without_a_type_is_a_file(self, host: Host) -> None:
        made = (await host.client.put("/v1/files/k")).json()
        assert (made["size_bytes"], made["mime_type"], made["file_name"]) == (0, None, None)
        read = await host.client.get("/v1/files/k/content")
        assert (read.status_code, read.content, read.headers["content-type"]) == (200, b"", "application/octet-stream")

    async def test_file_may_be_larger_than_other_bodies_and_ends_at_its_limit(self, host: Host) -> None:
        content = bytes(MAX_FILE_BYTES)
        assert (await host.client.put("/v1/files/k", content=content)).status_code == 200
        assert (await host.client.get("/v1/files/k/content")).content == content
        answer = await host.client.put("/v1/files/k", content=content + b"x")
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(11):
                yield bytes(1024 * 1024)

        answer = await host.client.put("/v1/files/k", content=pieces())
        assert answer.status_code == 413
        assert (await host.client.get("/v1/files/k")).json()["size_bytes"] == MAX_FILE_BYTES

    @pytest.mark.parametrize("name", ["../a", "a/b", "a\\b", "..", ".", "a\nb", "", "x" * 256])
    async def test_name_that_leads_to_another_folder_is_refused(self, host: Host, name: str) -> None:
        answer = await host.client.put("/v1/files/k", params={"file_name": name}, content=b"x")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "file_name")

    async def test_type_that_cannot_be_sent_again_is_refused(self, host: Host) -> None:
        answer = await host.client.put("/v1/files/k", content=b"x", headers={"Content-Type": "x" * 256})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Content-Type")


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/models/m", {}, "base_url"),
    ("/v1/models/m", {"base_url": ""}, "base_url"),
    ("/v1/models/m", {"base_url": "models.example"}, "base_url"),
    ("/v1/models/m", {"base_url": "ftp://models.example"}, "base_url"),
    ("/v1/models/m", {"base_url": "http:///v1"}, "base_url"),
    ("/v1/models/m", {"base_url": "https://user:pass@models.example"}, "base_url"),
    ("/v1/models/m", {"base_url": "https://models.example?key=1"}, "base_url"),
    ("/v1/models/m", {"base_url": "https://models.example/#a"}, "base_url"),
    ("/v1/models/m", {"base_url": "https://models.example/ v1"}, "base_url"),
    ("/v1/models/m", MODEL | {"name": ""}, "name"),
    ("/v1/models/m", MODEL | {"model_type": "oracle"}, "model_type"),
    ("/v1/models/m", MODEL | {"provider": "acme"}, "provider"),
    ("/v1/models/m", MODEL | {"api_key": ""}, "api_key"),
    ("/v1/models/m", MODEL | {"api_key": "two words"}, "api_key"),
    ("/v1/models/m", MODEL | {"api_key": "a\r\nX-Other: b"}, "api_key"),
    ("/v1/models/m", MODEL | {"context_window_tokens": 0}, "context_window_tokens"),
    ("/v1/models/m", MODEL | {"context_window_tokens": 2**40}, "context_window_tokens"),
    ("/v1/models/m", MODEL | {"default_args": []}, "default_args"),
    ("/v1/models/m", MODEL | {"default_args": {"x": "y" * 70_000}}, "default_args"),
    ("/v1/models/m", MODEL | {"timeout_seconds": 0}, "timeout_seconds"),
    ("/v1/models/m", MODEL | {"timeout_seconds": 3_601}, "timeout_seconds"),
    ("/v1/models/m", MODEL | {"timeout_seconds": float("nan")}, "timeout_seconds"),
    ("/v1/models/m", MODEL | {"enabled": "yes"}, "enabled"),
    ("/v1/models/m", MODEL | {"colour": "red"}, "colour"),
    (f"/v1/models/{'m' * 256}", MODEL, "model_id"),
    ("/v1/tool-servers/s", {"transport": "pigeon"}, "transport"),
    ("/v1/tool-servers/s", {"transport": "stdio"}, "body"),
    ("/v1/tool-servers/s", {"transport": "stdio", "command": [""]}, "body"),
    ("/v1/tool-servers/s", STDIO_SERVER | {"url": "https://x.example"}, "body"),
    ("/v1/tool-servers/s", STDIO_SERVER | {"headers": {"A": "b"}}, "body"),
    ("/v1/tool-servers/s", STDIO_SERVER | {"command": ["a\0b"]}, "command[0]"),
    ("/v1/tool-servers/s", STDIO_SERVER | {"command": ["x"] * 101}, "command"),
    ("/v1/tool-servers/s", STDIO_SERVER | {"env": {"A": 1}}, "env.A"),
    ("/v1/tool-servers/s", {"transport": "streamable_http"}, "body"),
    ("/v1/tool-servers/s", HTTP_SERVER | {"command": ["x"]}, "body"),
    ("/v1/tool-servers/s", HTTP_SERVER | {"env": {"A": "b"}}, "body"),
    ("/v1/tool-servers/s", HTTP_SERVER | {"url": "file:///etc/passwd"}, "url"),
    ("/v1/tool-servers/s", HTTP_SERVER | {"headers": {"A": "b\r\nC: d"}}, "headers.A"),
    ("/v1/tool-servers/two__parts", HTTP_SERVER, "server_id"),
    ("/v1/tool-servers/end_", HTTP_SERVER, "server_id"),
    ("/v1/tool-servers/with/slash", HTTP_SERVER, "server_id"),
    (f"/v1/tool-servers/{'s' * 33}", HTTP_SERVER, "server_id"),
    ("/v1/skills/k", {}, "instructions"),
    ("/v1/skills/k", {"instructions": ""}, "instructions"),
    ("/v1/skills/k", {"instructions": "x" * 300_000}, "instructions"),
    ("/v1/skills/k", SKILL | {"display_name": "a\nb"}, "display_name"),
    ("/v1/skills/k", SKILL | {"description": "x" * 10_001}, "description"),
]


@pytest.mark.parametrize(("path", "body", "field"), FAULTS)
async def test_bad_entry_is_refused_by_field(host: Host, path: str, body: dict[str, Any], field: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await host.client.put(path, content=json.dumps(body), headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.text
    assert (await host.client.get(path)).status_code in {404, 422}


@pytest.mark.parametrize("name", ["PATH", "path", "HOME", "RUNHOST_DATABASE_URL", "LD_PRELOAD", "A B", "1A", ""])
async def test_g_4_environment_of_the_host_cannot_be_set(host: Host, name: str) -> None:
    answer = await host.client.put("/v1/tool-servers/s", json=STDIO_SERVER | {"env": {name: SECRET}})
    assert (answer.status_code, answer.json()["errors"][0]["field"].partition(".")[0]) == (422, "env")
    assert SECRET not in answer.text


WITH_SECRETS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/models/m", MODEL | {"api_key": SECRET}),
    ("/v1/tool-servers/s", HTTP_SERVER | {"headers": {"Authorization": f"Bearer {SECRET}"}}),
    ("/v1/tool-servers/s", STDIO_SERVER | {"env": {"TOKEN": SECRET}}),
]


@pytest.mark.parametrize(("path", "body"), WITH_SECRETS)
async def test_inv_9_secrets_are_written_and_never_read(host: Host, path: str, body: dict[str, Any]) -> None:
    with structlog.testing.capture_logs() as logs:
        answers = [
            await host.client.put(path, json=body),
            await host.client.put(path, json=body | {"enabled": "no"}),
            await host.client.put(
                path, json={name: value for name, value in body.items() if name != "transport"} | {"x": 1}
            ),
            await host.client.get(path),
            await host.client.get(path.rpartition("/")[0]),
        ]
        if "tool-servers" in path:
            fakes(host).offers[host.workspace, "s"] = ProviderError("It failed.")
            answers.append(await host.client.post(f"{path}/refresh"))
            answers.append(await host.client.get(path))
    assert [answer.status_code for answer in answers[:5]] == [200, 422, 422, 200, 200]
    for answer in answers:
        assert SECRET not in answer.text + str(answer.headers)
    assert SECRET not in repr(logs)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tool-servers/s", HTTP_SERVER | {"headers": {"X-Any": f"{SECRET}\n"}}),
        ("/v1/tool-servers/s", STDIO_SERVER | {"env": {"ANY": f"{SECRET}\0"}}),
        ("/v1/models/m", {"base_url": f"https://user:{SECRET}@models.example"}),
        ("/v1/tool-servers/s", HTTP_SERVER | {"url": f"https://user:{SECRET}@tools.example"}),
    ],
)
async def test_inv_9_refused_secret_is_not_quoted(host: Host, path: str, body: dict[str, Any]) -> None:
    answer = await host.client.put(path, json=body)
    assert answer.status_code == 422
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    ("path", "key", "body"),
    [
        ("/v1/models", "model_id", MODEL),
        ("/v1/tool-servers", "server_id", HTTP_SERVER),
        ("/v1/skills", "skill_name", SKILL),
        ("/v1/files", "file_key", {"any": "content"}),
    ],
)
async def test_entries_are_paged_by_id_and_deleted(host: Host, path: str, key: str, body: dict[str, Any]) -> None:
    for name in "cab":
        await put(host, f"{path}/{name}", body)
    first = (await host.client.get(path, params={"limit": 2})).json()
    second = (await host.client.get(path, params={"cursor": first["next_cursor"]})).json()
    assert [item[key] for item in first["items"] + second["items"]] == ["a", "b", "c"]
    gone = await host.client.delete(f"{path}/b")
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await host.client.get(f"{path}/b")).status_code == 404
    assert [item[key] for item in (await host.client.get(path)).json()["items"]] == ["a", "c"]


def test_longest_prefix_says_how_large_a_body_may_be() -> None:
    limits = BodyLimits(4, {"/v1/files/": 10, "/v1/files/small/": 1})
    paths = ("/v1/events", "/v1/files", "/v1/files/k", "/v1/files/small/k")
    assert [limits.of(path) for path in paths] == [4, 4, 10, 1]
