"""Who sees what (P-36): owner, stranger with a key of another workspace, and nobody, for every route."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import update

from api.auth import Scope
from stores.identifiers import new_uuid
from stores.keys import KeyStore
from stores.tables import api_key
from tests.api.conftest import RUNNER, Host, event
from tests.api.furnished import furnish

ABSENT = str(new_uuid())


@dataclass(frozen=True)
class Case:
    """A route. ``path`` names the owner's thing, in braces; without one it is a list or a creation."""

    method: str
    path: str
    scope: Scope
    body: Any = None
    status: int = 200

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


CASES = [
    Case("POST", "/v1/events", Scope.EVENTS_WRITE, event("new"), 202),
    Case("GET", "/v1/events", Scope.RUNS_READ),
    Case("GET", "/v1/events/{event}", Scope.RUNS_READ),
    Case("POST", "/v1/runs", Scope.RUNS_WRITE, {"agent_id": "echo"}, 201),
    Case("GET", "/v1/runs", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}/events", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}/stream", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}/attempts", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}/artifacts", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}/accesses", Scope.RUNS_READ),
    Case("GET", "/v1/runs/{run}/authorization", Scope.RUNS_READ),
    Case("POST", "/v1/runs/{run}/authorization/revoke", Scope.RUNS_ADMIN, {"kind": "run"}, 409),
    Case("POST", "/v1/runs/{run}/cancel", Scope.RUNS_WRITE, None, 409),
    Case("GET", "/v1/conversations/c1/transcript", Scope.RUNS_READ),
    Case("GET", "/v1/conversations/c1/search?query=hello", Scope.RUNS_READ),
    Case("GET", "/v1/artifacts/{artifact}", Scope.ARTIFACTS_READ),
    Case("GET", "/v1/artifacts/{artifact}/content", Scope.ARTIFACTS_READ),
    Case("PUT", "/v1/agents/other", Scope.AGENTS_WRITE, {"runner_id": RUNNER}),
    Case("GET", "/v1/agents", Scope.RUNS_READ),
    Case("GET", "/v1/agents/{agent}", Scope.RUNS_READ),
    Case("PUT", "/v1/bindings/other", Scope.AGENTS_WRITE, {"agent_id": "echo", "event_types": ["x.y"]}),
    Case("GET", "/v1/bindings", Scope.RUNS_READ),
    Case("GET", "/v1/bindings/{binding}", Scope.RUNS_READ),
    Case("GET", "/v1/runners", Scope.RUNS_READ),
    Case("PUT", "/v1/models/other", Scope.AGENTS_WRITE, {"base_url": "https://models.example/v1"}),
    Case("GET", "/v1/models", Scope.RUNS_READ),
    Case("GET", "/v1/models/{model}", Scope.RUNS_READ),
    Case("DELETE", "/v1/models/{model}", Scope.AGENTS_WRITE, None, 204),
    Case(
        "PUT",
        "/v1/tool-servers/other",
        Scope.AGENTS_WRITE,
        {"transport": "streamable_http", "url": "https://x.example"},
    ),
    Case("GET", "/v1/tool-servers", Scope.RUNS_READ),
    Case("GET", "/v1/tool-servers/{server}", Scope.RUNS_READ),
    Case("DELETE", "/v1/tool-servers/{server}", Scope.AGENTS_WRITE, None, 204),
    Case("POST", "/v1/tool-servers/{server}/refresh", Scope.AGENTS_WRITE),
    Case("GET", "/v1/tools", Scope.RUNS_READ),
    Case("GET", "/v1/tools/{tool}", Scope.RUNS_READ),
    Case("PUT", "/v1/skills/other", Scope.AGENTS_WRITE, {"instructions": "x"}),
    Case("GET", "/v1/skills", Scope.RUNS_READ),
    Case("GET", "/v1/skills/{skill}", Scope.RUNS_READ),
    Case("DELETE", "/v1/skills/{skill}", Scope.AGENTS_WRITE, None, 204),
    Case("PUT", "/v1/files/other", Scope.AGENTS_WRITE, {"any": "content"}),
    Case("GET", "/v1/files", Scope.RUNS_READ),
    Case("GET", "/v1/files/{file}", Scope.RUNS_READ),
    Case("GET", "/v1/files/{file}/content", Scope.RUNS_READ),
    Case("DELETE", "/v1/files/{file}", Scope.AGENTS_WRITE, None, 204),
    Case("PUT", "/v1/knowledge-bases/other", Scope.AGENTS_WRITE, {}),
    Case("GET", "/v1/knowledge-bases", Scope.RUNS_READ),
    Case("GET", "/v1/knowledge-bases/{base}", Scope.RUNS_READ),
    Case("DELETE", "/v1/knowledge-bases/{base}", Scope.AGENTS_WRITE, None, 204),
    Case("POST", "/v1/knowledge-bases/{base}/retrieve", Scope.RUNS_READ, {"query_text": "content"}),
    Case("PUT", "/v1/knowledge-bases/{base}/documents/{document}", Scope.AGENTS_WRITE, {"any": "content"}),
    Case("GET", "/v1/knowledge-bases/{base}/documents", Scope.RUNS_READ),
    Case("GET", "/v1/knowledge-bases/{base}/documents/{document}", Scope.RUNS_READ),
    Case("GET", "/v1/knowledge-bases/{base}/documents/{document}/content", Scope.RUNS_READ),
    Case("DELETE", "/v1/knowledge-bases/{base}/documents/{document}", Scope.AGENTS_WRITE, None, 204),
]
LISTS = [
    f"/v1/{name}"
    for name in (
        *("events", "runs", "agents", "bindings"),
        *("models", "tool-servers", "tools", "skills", "files", "knowledge-bases"),
    )
]
all_routes = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture
async def things(host: Host) -> dict[str, str]:
    """What the owner, ``host``, has: one of everything."""
    return await furnish(host)


async def send(client: httpx.AsyncClient, case: Case, things: dict[str, str]) -> httpx.Response:
    return await client.request(case.method, case.path.format(**things), json=case.body)


def test_every_route_is_in_the_matrix(host: Host) -> None:
    """But those of the host API, which take no key: test_host.py and the matrix of the methods walk them."""
    described = {
        (method.upper(), path)
        for path, operations in host.app.openapi()["paths"].items()
        for method in operations
        if path.startswith("/v1/") and not path.startswith("/v1/host/")
    }
    walked = [(case.method, _template(case.path, described)) for case in CASES]
    assert described - set(walked) == set()
    assert len(walked) == len(set(walked))


def _template(path: str, described: set[tuple[str, str]]) -> str:
    """Return the described path that a case's path fills in; the one with the fewest gaps fits."""
    bare = path.partition("?")[0]
    fitting = {known for _, known in described if re.fullmatch(re.sub(r"\\{\w+\\}", r"[^/]+", re.escape(known)), bare)}
    return min(fitting, key=lambda known: known.count("{"), default=bare)


@all_routes
async def test_owner_with_the_scope_alone_is_served(host: Host, things: dict[str, str], case: Case) -> None:
    answer = await send(await host.caller(scopes=[case.scope]), case, things)
    assert answer.status_code == case.status, answer.text


@all_routes
async def test_key_without_the_scope_is_refused(host: Host, things: dict[str, str], case: Case) -> None:
    answer = await send(await host.caller(scopes=[scope for scope in Scope if scope != case.scope]), case, things)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (403, "unauthorized")
    assert repr(case.scope.value) in problem["detail"]
    assert f'scope="{case.scope}"' in answer.headers["www-authenticate"]


@all_routes
async def test_nobody_is_refused_before_anything_is_read(host: Host, case: Case) -> None:
    answer = await host.client.request(
        case.method, case.path.format_map(_Anything()), content=b"{", headers={"Authorization": ""}
    )
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("case", [case for case in CASES if "{" in case.path], ids=str)
async def test_foreign_things_look_like_absent_ones(host: Host, things: dict[str, str], case: Case) -> None:
    foreign = await host.stranger()
    absent = dict.fromkeys(things, ABSENT)
    seen = await send(foreign, case, things)
    unseen = await send(foreign, case, absent)
    assert seen.status_code == unseen.status_code == 404
    content = seen.content
    for name in (name for name in things if f"{{{name}}}" in case.path):
        content = content.replace(things[name].encode(), b"ID")
    assert content == unseen.content.replace(ABSENT.encode(), b"ID")
    ignored = {"content-length"}
    assert [item for item in seen.headers.items() if item[0] not in ignored] == [
        item for item in unseen.headers.items() if item[0] not in ignored
    ]


@pytest.mark.parametrize("path", LISTS)
async def test_foreign_lists_are_empty(host: Host, things: dict[str, str], path: str) -> None:
    assert (await host.client.get(path)).json()["items"] != []
    assert (await (await host.stranger()).get(path)).json()["items"] == []


@pytest.mark.parametrize("path", ["/v1/conversations/c1/transcript", "/v1/conversations/c1/search?query=hello"])
async def test_foreign_conversations_are_empty(host: Host, things: dict[str, str], path: str) -> None:
    assert (await host.client.get(path)).json()["items"] != []
    assert (await (await host.stranger()).get(path)).json()["items"] == []


async def test_foreign_agent_cannot_be_run_or_bound(host: Host, things: dict[str, str]) -> None:
    foreign = await host.stranger()
    absent = await foreign.post("/v1/runs", json={"agent_id": "nobody"})
    seen = await foreign.post("/v1/runs", json={"agent_id": "echo"})
    assert seen.status_code == 404
    assert seen.text.replace("echo", "ID") == absent.text.replace("nobody", "ID")
    assert (await foreign.put("/v1/bindings/b", json={"agent_id": "echo"})).status_code == 404


async def test_cursor_of_another_workspace_is_refused(host: Host, things: dict[str, str]) -> None:
    await host.run()
    cursor = (await host.client.get("/v1/runs?limit=1")).json()["next_cursor"]
    answer = await (await host.stranger()).get("/v1/runs", params={"cursor": cursor})
    assert answer.json()["code"] == "cursor_invalid"


class TestKeys:
    async def test_all_ways_to_have_no_valid_key_look_alike(self, host: Host) -> None:
        expired = await host.key(expires_at=datetime.now(UTC) - timedelta(seconds=1))
        revoked = await host.key()
        async with host.engine.begin() as connection:
            keys = await KeyStore(connection).list(host.workspace)
            await KeyStore(connection).revoke(keys[-1].key_id)
        headers = [f"Bearer {expired}", f"Bearer {revoked}", "Bearer rh_unknown", "Bearer ", "Basic eDp5", "x", ""]
        answers = [await host.client.get("/v1/runs", headers={"Authorization": value}) for value in headers]
        answers.append(await (await host.bearer(None)).get("/v1/runs"))
        assert {(answer.status_code, answer.content) for answer in answers} == {(401, answers[0].content)}

    async def test_revoked_key_is_refused_from_the_next_request_on(self, host: Host) -> None:
        assert (await host.client.get("/v1/runs")).status_code == 200
        async with host.engine.begin() as connection:
            await connection.execute(
                update(api_key).where(api_key.c.workspace_id == host.workspace).values(revoked_at=datetime.now(UTC))
            )
        assert (await host.client.get("/v1/runs")).status_code == 401

    async def test_scheme_is_read_in_any_case(self, host: Host) -> None:
        secret = await host.key()
        answer = await host.client.get("/v1/runs", headers={"Authorization": f"bEaReR {secret}"})
        assert answer.status_code == 200

    async def test_key_is_in_no_answer(self, host: Host) -> None:
        secret = await host.key(scopes=[])
        answer = await (await host.bearer(secret)).get("/v1/runs")
        assert secret not in answer.text + str(answer.headers)


class _Anything(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return str(uuid4())
