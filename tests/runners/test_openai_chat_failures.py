"""How the openai-chat runner ends when config, endpoint or network let it down."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from runhost.protocol import AgentInput, ContentElement, Usage
from runners.official.openai_chat import endpoint
from runners.official.openai_chat.answer import MAX_ANSWER_BYTES
from runners.official.openai_chat.endpoint import MAX_EVENT_BYTES
from tests.fixtures.openai_stub import (
    OpenAIStub,
    Reply,
    StubRequest,
    chunk,
    completion,
    error_body,
    usage_of,
)
from tests.runners.chat_runs import config_for, failure_of, run_chat, text_of

CANARY = "sk-canary-7f3a9c"


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (302, "runner.error", False),
        (400, "runner.error", False),
        (401, "runner.unauthorized", False),
        (403, "runner.unauthorized", False),
        (404, "runner.error", False),
        (408, "runner.error", True),
        (422, "runner.error", False),
        (429, "runner.error", True),
        (500, "runner.error", True),
        (503, "runner.error", True),
    ],
)
async def test_http_errors_are_told_apart(openai_stub: OpenAIStub, status: int, code: str, retryable: bool) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        location = {"Location": f"{openai_stub.root}/elsewhere"}
        await reply.send_json(status, error_body("the reason"), location)

    openai_stub.behave = answer
    failure = await failure_of(config_for(openai_stub))
    assert (failure["code"], failure["retryable"]) == (code, retryable)
    assert f"HTTP {status}" in str(failure["error"])
    assert ("the reason" in str(failure["error"])) == (code == "runner.error")
    # Neither a redirect is followed nor a refusal tried again.
    assert [request.path for request in openai_stub.requests] == ["/v1/chat/completions"]


def _body_error_object() -> str:
    return json.dumps(error_body(f"bad key {CANARY} " + "x" * 500))


def _body_key_across_the_cut() -> str:
    return "y" * 190 + CANARY + "z" * 100


def _body_with_control_characters() -> str:
    return f"line\r\n\x00\x1b[31m{CANARY}\u2028" + "w" * 500


@pytest.mark.parametrize("status", [400, 401, 429, 500])
@pytest.mark.parametrize(
    "body",
    [_body_error_object, _body_key_across_the_cut, _body_with_control_characters],
    ids=lambda b: b.__name__,
)
async def test_key_and_long_bodies_stay_out_of_errors(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, status: int, body: Callable[[], str]
) -> None:
    async def answer(request: StubRequest, reply: Reply) -> None:
        headers = {"X-Echo": request.headers["authorization"], "X-Mark": "header-canary"}
        await reply.send_text(status, body(), "text/plain; charset=utf-8", headers)

    openai_stub.behave = answer
    monkeypatch.setenv("STUB_API_KEY", CANARY)
    failure = await failure_of(config_for(openai_stub, api_key_env="STUB_API_KEY"))
    error = str(failure["error"])
    assert CANARY[:8] not in error
    assert "header-canary" not in error
    assert error.isprintable()
    assert len(error) < 300


@pytest.mark.parametrize(
    "report",
    [
        pytest.param({"error": {"message": f"overloaded {CANARY}", "code": "busy"}}, id="openai"),
        pytest.param({"error": f"overloaded {CANARY}"}, id="text"),
        pytest.param({"object": "error", "message": f"overloaded {CANARY}"}, id="flat"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_error_inside_an_answer_fails_the_run(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, report: dict[str, Any], streamed: bool
) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        if not streamed:
            return await reply.send_json(200, report)
        await reply.start_stream()
        await reply.send_words("A ")
        await reply.send_event(report)
        return await reply.end_stream(None)

    openai_stub.behave = answer
    monkeypatch.setenv("STUB_API_KEY", CANARY)
    failure = await failure_of(config_for(openai_stub, api_key_env="STUB_API_KEY"))
    assert (failure["code"], failure["retryable"]) == ("runner.error", True)
    assert "overloaded [key]" in str(failure["error"])


async def _close(reply: Reply) -> None:
    del reply


async def _end_chunks(reply: Reply) -> None:
    await reply.end_chunks()


async def _reset(reply: Reply) -> None:
    reply.reset()


async def _invalid_json(reply: Reply) -> None:
    await reply.send_event('{"choices": [')
    await reply.end_stream()


async def _no_object(reply: Reply) -> None:
    await reply.send_event("[1]")
    await reply.end_stream()


async def _invalid_utf8(reply: Reply) -> None:
    await reply.send_raw(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n')
    await reply.end_stream()


async def _deep_json(reply: Reply) -> None:
    await reply.send_event("[" * 100_000)
    await reply.end_stream()


async def _endless_line(reply: Reply) -> None:
    for _ in range(MAX_EVENT_BYTES // 65_536 + 2):
        await reply.send_raw(b"data: " + b"x" * 65_536)
    await reply.until_disconnected()


async def _endless_event(reply: Reply) -> None:
    for _ in range(MAX_EVENT_BYTES // 65_536 + 2):
        await reply.send_raw(b"data: " + b"x" * 65_536 + b"\n")
    await reply.until_disconnected()


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until-close"])
@pytest.mark.parametrize(
    "break_off",
    [
        _close,
        _end_chunks,
        _reset,
        _invalid_json,
        _no_object,
        _invalid_utf8,
        _deep_json,
        _endless_line,
        _endless_event,
    ],
)
async def test_broken_stream_fails_the_run_as_retryable(
    openai_stub: OpenAIStub, break_off: Callable[[Reply], Awaitable[None]], chunked: bool
) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream(chunked=chunked)
        await reply.send_event(chunk({"content": "A "}, usage=usage_of(2, 1)))
        await break_off(reply)

    openai_stub.behave = answer
    delta, end = await run_chat(config_for(openai_stub))
    assert text_of(delta) == "A "
    assert (end.type, end.data["code"], end.data["retryable"]) == ("run.failed", "runner.error", True)
    assert "the answer broke off" in str(end.data["error"])
    # What was known is kept (D-32).
    assert end.usage == Usage(prompt_tokens=2, completion_tokens=1, total_tokens=3)
    assert len(openai_stub.requests) == 1


async def test_connection_cut_before_the_answer_is_not_tried_again(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        reply.reset()

    openai_stub.behave = answer
    failure = await failure_of(config_for(openai_stub))
    assert (failure["code"], failure["retryable"]) == ("runner.error", True)
    assert len(openai_stub.requests) == 1


async def test_web_page_points_to_the_base_url(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.send_text(200, "<html>Welcome</html>", "text/html; charset=utf-8")

    openai_stub.behave = answer
    failure = await failure_of(config_for(openai_stub))
    assert (failure["code"], failure["retryable"]) == ("runner.error", False)
    assert "base_url" in str(failure["error"])


async def test_unreachable_endpoint_is_retryable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    failure = await failure_of({"base_url": f"http://127.0.0.1:{port}/v1", "model": "m"})
    assert (failure["code"], failure["retryable"]) == ("runner.error", True)
    assert "ConnectError" in str(failure["error"])


@pytest.mark.parametrize(
    "chunk_of_silence",
    [
        pytest.param(chunk({"role": "assistant", "content": ""}), id="no-content"),
        pytest.param(chunk({"content": " \n"}), id="whitespace"),
        pytest.param(chunk({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}), id="tool-call"),
        pytest.param(chunk({"reasoning_content": "hm"}), id="reasoning-only"),
    ],
)
async def test_answer_without_text_is_no_output(openai_stub: OpenAIStub, chunk_of_silence: dict[str, Any]) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_event(chunk_of_silence)
        await reply.send_event(chunk({}, "tool_calls", usage=usage_of(9, 0)))
        await reply.end_stream(None)

    openai_stub.behave = answer
    *_, end = await run_chat(config_for(openai_stub))
    assert (end.type, end.data["code"], end.data["retryable"]) == ("run.failed", "runner.no_output", False)
    assert "tool_calls" in str(end.data["error"])
    assert end.usage == Usage(prompt_tokens=9, completion_tokens=0, total_tokens=9)


async def test_whole_answer_without_text_is_no_output(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.send_json(200, completion(None))

    openai_stub.behave = answer
    assert (await failure_of(config_for(openai_stub)))["code"] == "runner.no_output"


async def test_endless_answer_is_cut_off_and_failed(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        for _ in range(MAX_ANSWER_BYTES // 65_536 + 1):
            await reply.send_words("流" * 21_846)
        await reply.until_disconnected()

    openai_stub.behave = answer
    failure = await failure_of(config_for(openai_stub))
    assert (failure["code"], failure["retryable"]) == ("runner.error", False)
    assert "max_tokens" in str(failure["error"])


async def _no_head(reply: Reply) -> None:
    await reply.until_disconnected()


async def _stall(reply: Reply) -> None:
    await reply.start_stream()
    await reply.send_words("A ")
    await reply.until_disconnected()


async def _trickle(reply: Reply) -> None:
    await reply.start_stream()
    while True:
        await reply.send_words("A ")
        await asyncio.sleep(0.02)


async def _stall_whole(reply: Reply) -> None:
    await reply.send_head(200, {"Content-Type": "application/json", "Content-Length": "100"})
    await reply.until_disconnected()


@pytest.mark.parametrize("limit", ["timeout", "deadline"])
@pytest.mark.parametrize("hang", [_no_head, _stall, _trickle, _stall_whole])
async def test_slow_answer_ends_as_timeout(
    openai_stub: OpenAIStub, hang: Callable[[Reply], Awaitable[None]], limit: str
) -> None:
    openai_stub.behave = lambda _request, reply: hang(reply)
    started = time.monotonic()
    if limit == "timeout":
        failure = await failure_of(config_for(openai_stub, timeout=0.3))
    else:
        failure = await failure_of(config_for(openai_stub), deadline_at=time.time() + 0.3)
    assert (failure["code"], failure["retryable"]) == ("runner.timeout", True)
    assert "within 0.3 s" in str(failure["error"])
    assert time.monotonic() - started < 5


async def test_passed_deadline_ends_as_timeout_at_once(openai_stub: OpenAIStub) -> None:
    failure = await failure_of(config_for(openai_stub), deadline_at=time.time() - 1)
    assert failure["code"] == "runner.timeout"


async def test_error_body_that_hangs_does_not_hold_the_error(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.send_head(500, {"Content-Type": "application/json", "Content-Length": "100"})
        await reply.send_raw(b"half a rea")
        await reply.until_disconnected()

    monkeypatch.setattr(endpoint, "ERROR_BODY_SECONDS", 0.2)
    openai_stub.behave = answer
    failure = await failure_of(config_for(openai_stub))
    assert failure["error"] == "the model endpoint answered HTTP 500: half a rea"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"base_url": None}, "base_url", id="no-address"),
        pytest.param({"base_url": "ftp://canary.example/v1"}, "base_url", id="scheme"),
        pytest.param({"base_url": "http://"}, "base_url", id="no-host"),
        pytest.param({"base_url": "http://canary:\x00"}, "base_url", id="invalid-address"),
        pytest.param({"base_url": "https://canary:pw@h.example"}, "base_url", id="user"),
        pytest.param({"base_url": "https://h.example?key=canary"}, "base_url", id="query"),
        pytest.param({"model": ""}, "model", id="no-model"),
        pytest.param({"temperature": 2.5}, "temperature", id="temperature"),
        pytest.param({"max_tokens": 0}, "max_tokens", id="max-tokens"),
        pytest.param({"timeout": "canary"}, "timeout", id="timeout"),
        pytest.param({"prompt": [{"role": "canary", "content": "x"}]}, "prompt[0].role", id="prompt-role"),
        pytest.param({"api_key_env": "canary value"}, "api_key_env", id="key-in-place-of-its-name"),
        pytest.param({"api_key_env": "DATABASE_URL"}, "api_key_env", id="other-secret"),
        pytest.param({"api_key_env": "RUNHOST_API_KEY"}, "api_key_env", id="host-secret"),
    ],
)
async def test_bad_config_names_the_field_and_no_value(
    openai_stub: OpenAIStub, changes: dict[str, Any], field: str
) -> None:
    failure = await failure_of(config_for(openai_stub, **changes))
    assert (failure["code"], failure["retryable"]) == ("runner.config", False)
    assert f"{field}: " in str(failure["error"])
    assert "canary" not in str(failure["error"])
    assert not openai_stub.requests


@pytest.mark.parametrize(
    "value", [None, "", " \n", f"{CANARY}\nHost: elsewhere", f"{CANARY} x", f"{CANARY}é"], ids=repr
)
async def test_unusable_key_names_the_variable_and_no_value(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("STUB_API_KEY", value)
    failure = await failure_of(config_for(openai_stub, api_key_env="STUB_API_KEY"))
    assert (failure["code"], failure["retryable"]) == ("runner.config", False)
    assert "'STUB_API_KEY'" in str(failure["error"])
    assert CANARY not in str(failure["error"])
    assert not openai_stub.requests


async def test_event_without_text_fails_the_run(openai_stub: OpenAIStub) -> None:
    picture = AgentInput(text=" ", contents=[ContentElement(type="image_base64", image_base64="aGk=")])
    failure = await failure_of(config_for(openai_stub), picture)
    assert (failure["code"], failure["retryable"]) == ("runner.error", False)
    assert not openai_stub.requests
