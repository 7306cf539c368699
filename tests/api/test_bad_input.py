"""Bad input: a problem document that names the field, and nothing written."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.problems import SHOWN_CHARACTERS
from tests.api.conftest import RUNNER, Host, NewHost, event

JSON = {"Content-Type": "application/json"}

EVENT_FAULTS = [
    ("unknown", event(extra=1), "extra"),
    ("unknown_in_part", event(input={"text": "x", "mood": "?"}), "input.mood"),
    ("unknown_in_actor", event(actor={"actor_type": "user", "age": 3}), "actor.age"),
    ("missing", {key: value for key, value in event().items() if key != "event_id"}, "event_id"),
    ("wrong_type", event(conversation_id=5), "conversation_id"),
    ("number_as_text", event(event_time="5"), "event_time"),
    ("null", event(input=None), "input"),
    ("list", event(delivery=[]), "delivery"),
    ("long_id", event("x" * 256), "event_id"),
    ("empty_id", event(""), "event_id"),
    ("control_character", event("a\nb"), "event_id"),
    ("nul_in_id", event(conversation_id="a\x00"), "conversation_id"),
    ("nul_in_kind", event(actor={"actor_type": "a\x00"}), "actor.actor_type"),
    ("nul_in_subject", event(subject={"subject_type": "a\x00"}), "subject.subject_type"),
    ("surrogate_in_id", event("\ud800"), "event_id"),
    ("long_kind", event(actor={"actor_type": "x" * 51}), "actor.actor_type"),
    ("event_type", event(event_type="Message"), "event_type"),
    ("long_event_type", event(event_type="a." + "b" * 100), "event_type"),
    ("source", event(source="host"), "source"),
    ("milliseconds", event(event_time=10**15), "event_time"),
    ("nan", event(data={"x": [1, float("nan")]}), "data.x[1]"),
    ("infinity", event(metadata={"x": float("-inf")}), "metadata.x"),
    ("nan_in_text", event(input={"text": float("nan")}), "input.text"),
    ("large_number", event(data={"x": 2**64}), "data.x"),
    ("large_data", event(data={"x": "y" * 70_000}), "data"),
    ("element", event(input={"contents": [{"type": "hologram"}]}), "input.contents[0].type"),
]


async def is_untouched(host: Host) -> bool:
    return not (await host.client.get("/v1/events")).json()["items"]


@pytest.mark.parametrize(("body", "field"), [case[1:] for case in EVENT_FAULTS], ids=[case[0] for case in EVENT_FAULTS])
async def test_bad_event_is_refused_by_field(host: Host, body: Any, field: str) -> None:
    answer = await host.client.post("/v1/events", content=json.dumps(body), headers=JSON)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_argument"), problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in [fault["field"] for fault in problem["errors"]]
    assert problem["detail"].startswith(problem["errors"][0]["field"])
    assert await is_untouched(host)


async def test_number_that_overflows_to_infinity_is_refused(host: Host) -> None:
    body = json.dumps(event(data={"x": 0})).replace('"x": 0', '"x": 1e999')
    answer = await host.client.post("/v1/events", content=body, headers=JSON)
    assert answer.json()["errors"][0]["field"] == "data.x"


UNREADABLE = [
    ("cut", b'{"event_id": ', "character 13"),
    ("empty_text", b"", "body"),
    ("not_utf8", b'{"a": "\xff"}', "UnicodeDecodeError"),
    ("deep", b"[" * 100_000, "RecursionError"),
    ("endless_number", b'{"a": ' + b"1" * 10_000 + b"}", "ValueError"),
    ("trailing", b"{} {}", "character 3"),
]


@pytest.mark.parametrize(("body", "hint"), [case[1:] for case in UNREADABLE], ids=[case[0] for case in UNREADABLE])
async def test_unreadable_json_is_refused(host: Host, body: bytes, hint: str) -> None:
    answer = await host.client.post("/v1/events", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400 if body else 422, "invalid_argument")
    assert hint in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"5", b"null"])
async def test_body_that_is_no_object_is_refused(host: Host, body: bytes) -> None:
    answer = await host.client.post("/v1/events", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body")


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "multipart/form-data"}])
async def test_body_that_is_not_json_by_its_type_is_refused(host: Host, headers: dict[str, str]) -> None:
    answer = await host.client.post("/v1/events", content=json.dumps(event()), headers=headers)
    assert answer.status_code == 415
    assert "application/json" in answer.json()["detail"]


class TestLargeBodies:
    @pytest.fixture
    async def small(self, new_host: NewHost) -> Host:
        return await new_host(max_body_bytes=1_000)

    async def test_declared_length_over_the_limit_is_refused(self, small: Host) -> None:
        answer = await small.client.post("/v1/events", content=b" " * 1_001, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
        assert "1000 bytes" in answer.json()["detail"]

    async def test_undeclared_length_is_refused_while_it_comes(self, small: Host) -> None:
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            while sent < 100:
                sent += 1
                yield b" " * 100

        answer = await small.client.post("/v1/events", content=endless(), headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")

    async def test_body_at_the_limit_is_read(self, small: Host) -> None:
        body = json.dumps(event()).encode()
        answer = await small.client.post("/v1/events", content=body + b" " * (1_000 - len(body)), headers=JSON)
        assert answer.status_code == 202

    async def test_stranger_is_refused_before_the_length_matters(self, small: Host) -> None:
        answer = await (await small.bearer(None)).post("/v1/events", content=b" " * 2_000, headers=JSON)
        assert answer.status_code == 401


QUERIES = [
    ("/v1/runs", "limit", "0"),
    ("/v1/runs", "limit", "-1"),
    ("/v1/runs", "limit", "x"),
    ("/v1/runs", "status", "done"),
    ("/v1/runs", "stauts", "failed"),
    ("/v1/runs", "created_after", "yesterday"),
    ("/v1/runs", "created_after", "2026-01-01T00:00:00"),
    ("/v1/runs", "agent_id", "x" * 256),
    ("/v1/runs", "agent_id", "a\x00"),
    ("/v1/runs", "created_after", "1767323045"),
    ("/v1/runs", "created_before", "2026-01-02T03:04:05"),
    ("/v1/events", "run_id", "x"),
    ("/v1/events", "event_type", "X"),
    ("/v1/conversations/c/search", "query", ""),
    ("/v1/conversations/c/transcript", "bot_id", ""),
    ("/v1/agents", "unknown", "x"),
]


@pytest.mark.parametrize(("path", "name", "value"), QUERIES)
async def test_bad_query_is_refused_by_name(host: Host, path: str, name: str, value: str) -> None:
    answer = await host.client.get(path, params={"query": "q"} | {name: value} if "search" in path else {name: value})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, name)


CURSORS = ["x", "", "AAAA", "日本", "a" * 500, "%00", "eyJhIjoxfQ"]


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/events", "/v1/agents", "/v1/bindings"])
async def test_made_up_cursor_is_refused(host: Host, path: str, cursor: str) -> None:
    answer = await host.client.get(path, params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "cursor_invalid")


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/events/a%00b", "/v1/events/a%0Ab", "/v1/events/" + "x" * 256),
        *("/v1/artifacts/a%00b", "/v1/agents/a%00", "/v1/agents/a%0A", "/v1/bindings/%7f"),
    ],
)
async def test_id_in_a_path_that_can_be_none_is_refused(host: Host, path: str) -> None:
    assert (await host.client.get(path)).status_code == 422


@pytest.mark.parametrize("path", ["/v1/runs/a%00b", "/v1/runs/%ff%fe", "/v1/runs/" + "x" * 5_000])
async def test_run_id_of_any_form_is_not_found(host: Host, path: str) -> None:
    answer = await host.client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")
    assert len(answer.json()["detail"]) < 400


async def test_value_that_was_sent_is_shown_cut(host: Host) -> None:
    answer = await host.client.post("/v1/events", json=event("x" * 5_000, source="s\n"))
    shown = {fault["field"]: fault["value"] for fault in answer.json()["errors"]}
    assert shown == {"event_id": "x" * SHOWN_CHARACTERS + "...", "source": "s\\n"}


async def test_secret_is_never_shown(host: Host) -> None:
    body = {"runner_id": RUNNER, "api_key": "canary", "nested": {"token": "canary"}, "runner_config": "canary"}
    answer = await host.client.put("/v1/agents/a", json=body | {"password_list": ["canary"]})
    assert answer.status_code == 422
    fields = {fault["field"]: fault.get("value") for fault in answer.json()["errors"]}
    assert fields == {"api_key": None, "nested": None, "password_list": None, "runner_config": "canary"}


async def test_many_faults_are_cut(host: Host) -> None:
    answer = await host.client.post("/v1/events", json=event() | {f"x{number}": 1 for number in range(1_000)})
    assert len(answer.json()["errors"]) == 20


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/", 404),
        ("GET", "/v1/runs/", 404),
        ("DELETE", "/v1/runs", 405),
        ("POST", "/healthz", 405),
        ("PATCH", "/v1/agents/echo", 405),
    ],
)
async def test_unknown_routes_and_methods_are_problems_too(host: Host, method: str, path: str, status: int) -> None:
    answer = await host.client.request(method, path)
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["instance"]) == (status, status, path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert ("allow" in answer.headers) == (status == 405)


async def test_problem_has_the_members_of_rfc_9457(host: Host) -> None:
    problem = (await host.client.get("/v1/runs/x")).json()
    assert problem == {
        "type": "urn:runhost:problem:run_not_found",
        "title": "No such run",
        "status": 404,
        "detail": "There is no run 'x' in this workspace.",
        "instance": "/v1/runs/x",
        "code": "run_not_found",
        "retryable": False,
    }


RUN_FAULTS = [
    ({}, "agent_id"),
    ({"agent_id": "echo", "runner_id": RUNNER}, "runner_id"),
    ({"agent_id": "echo", "event_type": "x"}, "event_type"),
    ({"agent_id": "echo", "data": {"x": "y" * 70_000}}, "data"),
    ({"agent_id": "echo", "metadata": {"x": "y" * 70_000}}, "metadata"),
    ({"agent_id": "echo", "input": {"text": 1}}, "input.text"),
]


@pytest.mark.parametrize(("body", "field"), RUN_FAULTS)
async def test_bad_run_is_refused_by_field(host: Host, body: dict[str, Any], field: str) -> None:
    await host.agent()
    answer = await host.client.post("/v1/runs", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert await is_untouched(host)


@pytest.mark.parametrize("body", [{"reason": 5}, {"reason": "x" * 1_001}, {"why": "x"}, []])
async def test_bad_cancel_is_refused(host: Host, body: Any) -> None:
    run = await host.run()
    answer = await host.client.post(f"/v1/runs/{run['run_id']}/cancel", json=body)
    assert answer.status_code == 422
    assert (await host.client.get(f"/v1/runs/{run['run_id']}")).json()["cancel_requested_at"] is None
