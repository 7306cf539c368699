"""What the openai-chat runner sends, and what it makes of answers that are in order."""

import asyncio
import functools
from contextlib import aclosing
from typing import Any

import pytest

from runhost.protocol import (
    AgentInput,
    AgentRunResult,
    ContentElement,
    Usage,
    parse_result,
    validate_payload,
)
from runners.discovery import discover
from runners.in_process import InProcessTransport
from runners.official.openai_chat.config import ChatConfig
from runners.official.openai_chat.runner import OpenAIChatRunner
from runners.registry import RunnerRegistry
from runners.transport import StopReason
from tests.eventually import eventually
from tests.fixtures.openai_stub import (
    MODEL,
    WORDS,
    OpenAIStub,
    Reply,
    StubRequest,
    chunk,
    completion,
    usage_of,
)
from tests.runners.chat_runs import MANIFEST, chat_context, config_for, run_chat, text_of
from tests.runners.hosts import NO_HOST

RUNNER_ID = "plugin:runhost/openai-chat/default"


async def test_answer_streams_as_increments_then_completes(openai_stub: OpenAIStub) -> None:
    results = await run_chat(config_for(openai_stub))
    *deltas, message, end = results
    assert [text_of(delta) for delta in deltas] == WORDS
    assert {delta.type for delta in deltas} == {"message.delta"}
    assert (message.type, text_of(message)) == ("message.completed", "".join(WORDS))
    assert (end.type, end.data) == ("run.completed", {"finish_reason": "stop"})


async def test_every_result_fits_the_protocol(openai_stub: OpenAIStub) -> None:
    for result in await run_chat(config_for(openai_stub)):
        assert not parse_result(result).warnings
        validate_payload(result)


async def test_usage_is_reported_once_with_the_end(openai_stub: OpenAIStub) -> None:
    *before, end = await run_chat(config_for(openai_stub))
    assert all(result.usage is None for result in before)
    assert end.usage == Usage(prompt_tokens=10, completion_tokens=7, total_tokens=17)


async def test_request_carries_config_and_input(openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_API_KEY", "sk-1234\n")
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Yes."}]
    config = config_for(openai_stub, api_key_env="STUB_API_KEY", prompt=prompt, temperature=0, max_tokens=3, timeout=9)
    *_, end = await run_chat(config)
    (request,) = openai_stub.requests
    assert request.headers["authorization"] == "Bearer sk-1234"
    assert request.json == {
        "model": MODEL,
        "messages": [*prompt, {"role": "user", "content": "What is durable?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "max_tokens": 3,
    }
    assert end.data["finish_reason"] == "length"


async def test_empty_form_fields_are_left_to_the_endpoint(openai_stub: OpenAIStub) -> None:
    await run_chat(config_for(openai_stub, api_key_env="", prompt="", temperature=None, max_tokens=""))
    (request,) = openai_stub.requests
    assert "authorization" not in request.headers
    assert request.json.keys() == {"model", "messages", "stream", "stream_options"}
    assert [message["role"] for message in request.json["messages"]] == ["user"]


async def test_text_prompt_becomes_a_system_message(openai_stub: OpenAIStub) -> None:
    await run_chat(config_for(openai_stub, prompt="Be brief."))
    assert openai_stub.requests[0].json["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_prompt_of_the_form_is_the_default(openai_stub: OpenAIStub) -> None:
    await run_chat(config_for(openai_stub))
    system, user = openai_stub.requests[0].json["messages"]
    assert system == {"role": "system", "content": "You are a helpful assistant."}
    assert user == {"role": "user", "content": "What is durable?"}


async def test_text_elements_are_joined_and_others_left_out(openai_stub: OpenAIStub) -> None:
    contents = [
        ContentElement(type="text", text="one"),
        ContentElement(type="image_base64", image_base64="aGk="),
        ContentElement(type="text", text="two"),
    ]
    await run_chat(config_for(openai_stub), AgentInput(text="one two", contents=contents))
    assert openai_stub.requests[0].json["messages"][-1]["content"] == "one\ntwo"


async def test_trailing_slash_of_base_url_is_ignored(openai_stub: OpenAIStub) -> None:
    await run_chat(config_for(openai_stub, base_url=openai_stub.base_url + "/"))
    assert openai_stub.requests[0].path == "/v1/chat/completions"


async def test_proxy_of_the_environment_is_not_asked_for_loopback(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    *_, end = await run_chat(config_for(openai_stub))
    assert end.type == "run.completed"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({}, None, id="empty"),
        pytest.param({"prompt_tokens": None, "completion_tokens": "7"}, None, id="no-counts"),
        pytest.param({"prompt_tokens": 3}, Usage(prompt_tokens=3), id="partly-known"),
        pytest.param({"prompt_tokens": -3, "completion_tokens": 2}, Usage(completion_tokens=2), id="negative"),
        pytest.param(
            {**usage_of(3, 4), "prompt_tokens_details": {"cached_tokens": 2}, "cost": 0.1},
            Usage(
                prompt_tokens=3,
                completion_tokens=4,
                total_tokens=7,
                prompt_tokens_details={"cached_tokens": 2},
            ),
            id="details",
        ),
    ],
)
async def test_unknown_usage_stays_unknown(openai_stub: OpenAIStub, usage: Any, expected: Usage | None) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("Yes.")
        await reply.send_event(chunk({}, "stop", usage=usage))
        await reply.end_stream(None)

    openai_stub.behave = answer
    *_, end = await run_chat(config_for(openai_stub))
    assert (end.type, end.usage) == ("run.completed", expected)


async def test_answer_in_one_piece_yields_only_the_message(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.send_json(200, completion("Yes.", "length", usage=usage_of(1, 2)))

    openai_stub.behave = answer
    message, end = await run_chat(config_for(openai_stub))
    assert text_of(message) == "Yes."
    assert end.data["finish_reason"] == "length"
    assert end.usage == Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)


@pytest.mark.parametrize(
    ("finish_reason", "end_mark", "expected"),
    [
        pytest.param("stop", False, "stop", id="no-end-mark"),
        pytest.param(None, True, "unknown", id="no-finish-reason"),
        pytest.param("content_filter", True, "content_filter", id="filtered"),
    ],
)
async def test_either_end_sign_is_enough(
    openai_stub: OpenAIStub, finish_reason: str | None, end_mark: bool, expected: str
) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream(chunked=False)
        await reply.send_words("Yes.")
        if finish_reason is not None:
            await reply.send_event(chunk({}, finish_reason))
        if end_mark:
            await reply.send_event("[DONE]")

    openai_stub.behave = answer
    *_, end = await run_chat(config_for(openai_stub))
    assert end.data == {"finish_reason": expected}


async def test_connection_lost_after_the_finish_costs_only_usage(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("Yes.")
        await reply.send_event(chunk({}, "stop"))
        reply.reset()

    openai_stub.behave = answer
    *_, end = await run_chat(config_for(openai_stub))
    assert (end.type, end.usage) == ("run.completed", None)


async def test_nothing_is_read_after_the_end_mark(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("Yes.")
        await reply.end_stream()
        await reply.until_disconnected()

    openai_stub.behave = answer
    *_, end = await run_chat(config_for(openai_stub))
    assert end.type == "run.completed"


async def test_unknown_chunks_are_skipped(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        for odd in [
            {"ping": 1},
            {"choices": None},
            {"choices": ["x"]},
            chunk({"content": 7}),
            chunk({"index": 1}),
        ]:
            await reply.send_event(odd)
        other = chunk({"content": "other choice"})
        other["choices"][0]["index"] = 1
        await reply.send_event(other)
        await reply.send_event(chunk({"content": [{"type": "text", "text": "Y"}, {"type": "reference"}]}))
        await reply.send_words("es.")
        await reply.end_stream()

    openai_stub.behave = answer
    *_, message, end = await run_chat(config_for(openai_stub))
    assert text_of(message) == "Yes."
    assert end.type == "run.completed"


async def test_split_characters_and_escapes_arrive_as_sent(openai_stub: OpenAIStub) -> None:
    async def answer(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        frame = 'data: {"choices":[{"index":0,"delta":{"content":"流😀 \\ud83d\\u0000"}}]}\r\n\r\n'.encode()
        for byte in frame:
            await reply.send_raw(bytes([byte]))
        await reply.end_stream()

    openai_stub.behave = answer
    delta, message, end = await run_chat(config_for(openai_stub))
    assert text_of(delta) == text_of(message) == "流😀 \ud83d\0"
    assert end.type == "run.completed"


async def test_cancelled_run_says_so_and_closes_the_request(openai_stub: OpenAIStub) -> None:
    disconnected = asyncio.Event()
    openai_stub.behave = functools.partial(_never_finish, disconnected)
    results: list[AgentRunResult] = []

    async def run() -> None:
        async for result in OpenAIChatRunner().run(chat_context(config_for(openai_stub))):
            results.append(result)  # noqa: PERF401 (read while it grows)

    task = asyncio.create_task(run())
    await eventually(lambda: results)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [result.type for result in results] == ["message.delta", "run.failed"]
    assert results[-1].data == {"code": "cancelled", "error": "the run was cancelled", "retryable": False}
    assert results[-1].usage == Usage(prompt_tokens=1, completion_tokens=1, total_tokens=2)
    await asyncio.wait_for(disconnected.wait(), 5)


async def test_abandoned_run_closes_the_request(openai_stub: OpenAIStub) -> None:
    disconnected = asyncio.Event()
    openai_stub.behave = functools.partial(_never_finish, disconnected)
    async with aclosing(OpenAIChatRunner().run(chat_context(config_for(openai_stub)))) as results:
        assert (await anext(results)).type == "message.delta"
    await asyncio.wait_for(disconnected.wait(), 5)


async def _never_finish(disconnected: asyncio.Event, _request: StubRequest, reply: Reply) -> None:
    await reply.start_stream()
    await reply.send_event(chunk({"content": "A "}, usage=usage_of(1, 1)))
    await reply.until_disconnected()
    disconnected.set()


async def test_run_through_the_in_process_transport(openai_stub: OpenAIStub) -> None:
    registry = RunnerRegistry(discover)
    session = InProcessTransport(registry).open(registry.get(RUNNER_ID), chat_context(config_for(openai_stub)), NO_HOST)
    results = [parse_result(value).result async for value in session.results()]
    assert [text_of(result) for result in results[:-1]] == [*WORDS, "".join(WORDS)]
    assert await session.stop(StopReason.ENDED, 1) is None


async def test_stop_through_the_transport_closes_the_request(openai_stub: OpenAIStub) -> None:
    disconnected = asyncio.Event()
    openai_stub.behave = functools.partial(_never_finish, disconnected)
    registry = RunnerRegistry(discover)
    session = InProcessTransport(registry).open(registry.get(RUNNER_ID), chat_context(config_for(openai_stub)), NO_HOST)
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 5) is None
    (end,) = await session.next_batch()
    assert parse_result(end).result.data["code"] == "cancelled"
    await asyncio.wait_for(disconnected.wait(), 5)


def test_form_has_an_item_for_every_config_field() -> None:
    items = {item.name: item for item in MANIFEST.config_schema}
    assert items.keys() == ChatConfig.model_fields.keys()
    assert MANIFEST.id == RUNNER_ID
    for name, field in ChatConfig.model_fields.items():
        assert items[name].required == field.is_required()
    assert ChatConfig.model_fields["timeout"].default == items["timeout"].default
