"""The run-scoped host API over HTTP: the wire around the gate, which has tests of its own."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from host_api.audit import AccessAudit
from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.gate import HostApi
from host_api.limits import CallLimits
from host_api.methods import ALL_METHODS
from host_api.requirements import OpenRun
from runhost.protocol import ErrorCode, MessageChunk
from runhost.protocol.host_api import HOST_METHODS, ModelStreamEvent, StateKeys, StateValue
from tests.api.conftest import Host, visitor
from tests.api.run_access import RunAccess, open_access
from tests.eventually import eventually
from tests.host_api.gates import define, definitions

PROMPT: dict[str, Any] = {"llm_model_uuid": "m1", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def access(host: Host) -> RunAccess:
    return await open_access(host)


@pytest.fixture(scope="module")
async def wrong_tokens(shared_host: Host) -> AsyncIterator[dict[str, str]]:
    """What others may show for a run, by who they are."""
    async with visitor(shared_host) as near, visitor(shared_host) as far:
        yield {
            "nobody": "",
            "key": f"Bearer {await near.key()}",
            "foreign run": f"Bearer {(await open_access(near)).token}",
            "run of another workspace": f"Bearer {(await open_access(far)).token}",
            "made up": f"Bearer {'x' * 43}",
        }


@pytest.fixture
def with_methods(server: Host, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Serve other methods than the real ones, behind the same gate and the same routes."""

    async def use(*own: MethodDefinition, limits: CallLimits | None = None) -> RunAccess:
        services = server.services.host_api._services
        api = HostApi(services, AccessAudit(services.pool), limits=limits, methods=definitions(*own))
        monkeypatch.setitem(server.services.__dict__, "host_api", api)
        return await open_access(server)

    return use


def frames(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.split("\n\n") if block and not block.startswith(":")]
    return [(name.removeprefix("event: "), orjson.loads(data.removeprefix("data: "))) for name, data in blocks]


async def test_call_is_answered_with_the_fields_of_its_return_model(access: RunAccess) -> None:
    answer = await access.call("get_langbot_version")
    assert (answer.status_code, answer.json()) == (200, {"langbot_version": "0.0.1"})


async def test_empty_body_stands_for_no_parameters(access: RunAccess) -> None:
    answer = await access.client.post("/v1/host/get_langbot_version", headers=access.headers)
    assert answer.status_code == 200


class TestRefusals:
    async def test_whatever_is_wrong_with_the_credentials_reads_the_same(self, host: Host, access: RunAccess) -> None:
        """PM-4, PM-5, PM-6: byte for byte, for methods that exist and others."""
        other, ended = await open_access(host), await open_access(host)
        await ended.end()
        wrong: list[dict[str, str]] = [
            {"Authorization": ""},
            {"Authorization": "Bearer "},
            {"Authorization": f"Basic {access.token}"},
            {"Authorization": f"Bearer {'x' * 43}"},
            {"Authorization": f"Bearer {other.token}"},
            {"Authorization": f"Bearer {ended.token}"},
            {"Authorization": f"Bearer {ended.token}", "Runhost_Run_Id": str(ended.row.run_id)},
            {"Authorization": f"Bearer {await host.key()}"},
            {"Runhost_Run_Id": str(other.row.run_id)},
            {"Runhost_Run_Id": ""},
            {"Runhost_Plugin_Identity": "acme/other"},
            {"Runhost_Plugin_Identity": ""},
        ]
        answers = [await access.call("state_get", {"scope": "no scope"}, **headers) for headers in wrong]
        bare = {name: value for name, value in access.headers.items() if "Identity" not in name}
        answers.append(await access.client.post("/v1/host/state_get", headers=bare))
        assert {(answer.status_code, answer.content) for answer in answers} == {(401, answers[0].content)}
        assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer realm="runhost run"'}
        assert access.token not in answers[0].text

    @pytest.mark.parametrize("method", HOST_METHODS)
    async def test_every_method_tells_everybody_but_its_runner_the_same(
        self, access: RunAccess, wrong_tokens: dict[str, str], method: str
    ) -> None:
        """PM-4, H-A1 to H-A3: byte for byte, and before what was sent is read."""
        answers = {
            who: await access.call(method, {"unknown": 1}, Authorization=token) for who, token in wrong_tokens.items()
        }
        assert {who: answer.status_code for who, answer in answers.items()} == dict.fromkeys(wrong_tokens, 401)
        told = {(answer.content, tuple(answer.headers.items())) for answer in answers.values()}
        assert len(told) == 1

    async def test_run_token_opens_no_other_route(self, access: RunAccess) -> None:
        for path in ("/v1/runs", f"/v1/runs/{access.row.run_id}", "/v1/agents"):
            assert (await access.client.get(path, headers=access.headers)).status_code == 401

    async def test_unknown_method_is_not_found(self, access: RunAccess) -> None:
        answer = await access.call("no_such_method")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    async def test_stranger_is_not_told_which_methods_exist(self, access: RunAccess) -> None:
        known = await access.call("state_get", Authorization="Bearer x")
        unknown = await access.call("no_such_method", Authorization="Bearer x")
        assert known.status_code == unknown.status_code == 401
        assert known.content.replace(b"state_get", b"M") == unknown.content.replace(b"no_such_method", b"M")

    async def test_not_granted_is_403_and_bad_parameters_are_400(self, access: RunAccess) -> None:
        refused = await access.call("invoke_llm", PROMPT | {"llm_model_uuid": "m2"})
        assert (refused.status_code, refused.json()["code"]) == (403, "unauthorized")
        invalid = await access.call("state_get", {"scope": "conversation"})
        assert (invalid.status_code, invalid.json()["code"]) == (400, "invalid_argument")
        assert invalid.headers["content-type"] == "application/problem+json"

    async def test_body_over_the_limit_is_413(self, access: RunAccess) -> None:
        answer = await access.call("state_set", {"scope": "actor", "key": "k", "value": "x" * 1024 * 1024})
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")

    async def test_flood_is_429_and_says_when_to_go_on(self, with_methods: Any) -> None:
        access = await with_methods(limits=CallLimits(calls_per_second=0.1, burst=2))
        answers = [await access.call("get_langbot_version") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        problem = answers[-1].json()
        assert (problem["code"], problem["retryable"], answers[-1].headers["retry-after"]) == (
            "rate_limited",
            True,
            "10",
        )
        assert 9 < problem["details"]["retry_after_seconds"] <= 10

    async def test_lone_surrogate_in_an_answer_survives(self, with_methods: Any) -> None:
        """D-31."""

        async def odd(call: Any, params: Any) -> StateValue:
            return StateValue(value="\ud800\x00")

        access = await with_methods(define("state_get", odd))
        answer = await access.call("state_get", {"scope": "actor", "key": "k"})
        assert answer.json() == {"value": "\ud800\x00"}


class TestStreams:
    async def test_stream_is_items_and_an_end(self, with_methods: Any) -> None:
        async def two(call: Any, params: Any) -> Any:
            for text in ("a", "b"):
                yield ModelStreamEvent(chunk=MessageChunk(role="assistant", content=text))

        access = await with_methods(define("invoke_llm_stream", two))
        answer = await access.call("invoke_llm_stream", PROMPT)
        assert answer.headers["content-type"].startswith("text/event-stream")
        (first, a), (second, b), end = frames(answer.text)
        assert (first, second, end) == ("item", "item", ("end", {}))
        assert (a["chunk"]["content"], b["chunk"]["content"]) == ("a", "b")

    async def test_empty_stream_is_an_end(self, with_methods: Any) -> None:
        async def nothing(call: Any, params: Any) -> Any:
            for _ in ():
                yield ModelStreamEvent()

        access = await with_methods(define("invoke_llm_stream", nothing))
        assert frames((await access.call("invoke_llm_stream", PROMPT)).text) == [("end", {})]

    async def test_refusal_before_the_first_event_is_a_problem(self, access: RunAccess) -> None:
        answer = await access.call("invoke_llm_stream", PROMPT | {"llm_model_uuid": "m2"})
        assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")

    async def test_failure_between_two_events_is_an_error_frame(self, with_methods: Any) -> None:
        async def broken(call: Any, params: Any) -> Any:
            yield ModelStreamEvent()
            raise HostCallError(ErrorCode.RUNTIME_ERROR, "The model hung up.", retryable=True)

        access = await with_methods(define("invoke_llm_stream", broken))
        item, error = frames((await access.call("invoke_llm_stream", PROMPT)).text)
        assert item[0] == "item"
        assert error == (
            "error",
            {"code": "runtime_error", "message": "The model hung up.", "retryable": True, "details": {}},
        )

    async def test_client_that_leaves_ends_the_stream(self, with_methods: Any) -> None:
        ended = asyncio.Event()

        async def endless(call: Any, params: Any) -> Any:
            try:
                while True:
                    yield ModelStreamEvent()
                    await asyncio.sleep(0.01)
            finally:
                ended.set()

        access = await with_methods(define("invoke_llm_stream", endless))
        path = "/v1/host/invoke_llm_stream"
        async with access.client.stream("POST", path, json=PROMPT, headers=access.headers) as answer:
            async for _ in answer.aiter_bytes():
                break
        await eventually(ended.is_set)


async def test_client_that_leaves_ends_its_call(with_methods: Any) -> None:
    """P-8, F-16."""
    began, ended = asyncio.Event(), asyncio.Event()

    async def long(call: Any, params: Any) -> StateKeys:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return StateKeys()

    access = await with_methods(define("state_list", long))
    calling = asyncio.create_task(access.call("state_list", {"scope": "actor"}))
    await began.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await eventually(ended.is_set)


def test_every_method_is_described_with_what_it_takes_and_answers(host: Host) -> None:
    document = host.app.openapi()
    schemas = document["components"]["schemas"]
    for name, method in HOST_METHODS.items():
        operation = document["paths"][f"/v1/host/{name}"]["post"]
        assert operation["security"] == [{"runToken": []}]
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        assert schemas[reference.rsplit("/", 1)[1]]["additionalProperties"] is False
        content = operation["responses"]["200"]["content"]
        assert ("text/event-stream" in content) == method.is_stream


def test_only_what_tells_nothing_is_open_to_every_run() -> None:
    """H-A4: the version, and a list of what is granted, which is empty where nothing is."""
    open_to_all = {method.name for method in ALL_METHODS if isinstance(method.requirement, OpenRun)}
    assert open_to_all == {"get_langbot_version", "list_knowledge_bases"}


class TestAccesses:
    async def test_granted_and_refused_calls_are_listed_newest_first(self, host: Host, access: RunAccess) -> None:
        """PROTOCOL 15, H-A9."""
        await access.call("get_langbot_version")
        await access.call("state_set", {"scope": "planet"})
        await access.call("invoke_llm", PROMPT | {"llm_model_uuid": "m2"})
        path = f"/v1/runs/{access.row.run_id}/accesses"
        await eventually(lambda: _has_items(host, path, 3))
        items = (await host.client.get(path)).json()["items"]
        assert [(item["action"], item["result"]) for item in items] == [
            ("invoke_llm", "unauthorized"),
            ("state_set", "invalid_argument"),
            ("get_langbot_version", "ok"),
        ]
        assert items[0]["resource"] == "model:m2"
        first = (await host.client.get(path, params={"limit": 1})).json()
        second = (await host.client.get(path, params={"limit": 1, "cursor": first["next_cursor"]})).json()
        assert [first["items"][0], second["items"][0]] == items[:2]

    async def test_nobody_reads_what_was_tried_in_the_name_of_their_run_with_wrong_credentials(
        self, host: Host, access: RunAccess
    ) -> None:
        await access.call("get_langbot_version", Authorization="Bearer x")
        await access.call("get_langbot_version")
        path = f"/v1/runs/{access.row.run_id}/accesses"
        await eventually(lambda: _has_items(host, path, 1))
        assert [item["result"] for item in (await host.client.get(path)).json()["items"]] == ["ok"]


async def _has_items(host: Host, path: str, count: int) -> bool:
    return len((await host.client.get(path)).json()["items"]) == count
