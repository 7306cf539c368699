"""What an endpoint is sent for a model call (PROTOCOL 9.1)."""

from typing import Any

import pytest

from providers.errors import ArgumentRefused
from providers.openai import OpenAIProvider
from tests.fixtures.openai_stub import MODEL, OpenAIStub
from tests.providers.model_calls import KEY, endpoint_of, prompt, ranking

PNG = "iVBORw0KGgoAAAA="


async def sent(models: OpenAIProvider, stub: OpenAIStub, *messages: Any, **fields: Any) -> Any:
    await models.invoke(endpoint_of(stub), prompt(*messages, **fields))
    return stub.requests[-1].json


async def test_call_carries_model_key_and_messages(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    body = await sent(models, openai_stub, {"role": "system", "content": "be brief"}, "你好\x00")
    assert body == {
        "model": MODEL,
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "你好\x00"}],
    }
    headers = openai_stub.requests[-1].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "idempotency-key" not in headers


async def test_call_without_key_shows_none(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    await models.invoke(endpoint_of(openai_stub, api_key=None), prompt("hello"))
    assert "authorization" not in openai_stub.requests[-1].headers


async def test_idempotency_key_is_passed_on(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    await models.invoke(endpoint_of(openai_stub), prompt("hello"), idempotency_key="run-7")
    assert openai_stub.requests[-1].headers["idempotency-key"] == "run-7"


async def test_arguments_of_a_call_override_those_of_the_model(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    endpoint = endpoint_of(openai_stub, default_args={"temperature": 0.1, "top_p": 0.5, "stream": True, "model": "x"})
    await models.invoke(endpoint, prompt("hello", extra_args={"temperature": 0.9}))
    body = openai_stub.requests[-1].json
    assert (body["temperature"], body["top_p"], body["model"]) == (0.9, 0.5, MODEL)
    assert "stream" not in body


@pytest.mark.parametrize("name", ["model", "messages", "stream", "stream_options", "tools"])
async def test_reserved_argument_is_refused(models: OpenAIProvider, openai_stub: OpenAIStub, name: str) -> None:
    with pytest.raises(ArgumentRefused, match=f"extra_args.{name}: is set by the host"):
        await models.invoke(endpoint_of(openai_stub), prompt("hello", extra_args={name: "x"}))
    assert openai_stub.requests == []


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param({"type": "text", "text": "hi"}, {"type": "text", "text": "hi"}, id="text"),
        pytest.param(
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            id="image-url",
        ),
        pytest.param(
            {"type": "image_base64", "image_base64": PNG},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            id="image-base64",
        ),
        pytest.param(
            {"type": "image_base64", "image_base64": "/9j/AAAA"},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/AAAA"}},
            id="jpeg",
        ),
        pytest.param(
            {"type": "image_base64", "image_base64": f"data:image/webp;base64,{PNG}"},
            {"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{PNG}"}},
            id="image-data-url",
        ),
        pytest.param(
            {"type": "file_base64", "file_base64": "AAAA", "file_name": "a.pdf"},
            {
                "type": "file",
                "file": {"file_data": "data:application/octet-stream;base64,AAAA", "filename": "a.pdf"},
            },
            id="file",
        ),
    ],
)
async def test_parts_take_the_form_of_the_interface(
    models: OpenAIProvider, openai_stub: OpenAIStub, part: dict[str, Any], expected: dict[str, Any]
) -> None:
    question = {"type": "text", "text": "what is this?"}
    body = await sent(models, openai_stub, {"role": "user", "content": [question, part]})
    assert body["messages"][0]["content"] == [question, expected]


async def test_single_text_part_is_sent_as_text(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    body = await sent(models, openai_stub, {"role": "user", "content": [{"type": "text", "text": "hi"}]})
    assert body["messages"][0]["content"] == "hi"


async def test_address_of_a_file_is_refused_by_its_path(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    message = {"role": "user", "content": [{"type": "file_url", "file_url": "https://x/y.pdf"}] * 2}
    with pytest.raises(ArgumentRefused, match=r"messages\[1\]\.content\[0\]: "):
        await models.invoke(endpoint_of(openai_stub), prompt("hello", message))


async def test_tool_calls_and_their_results_are_sent(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}

    async def behave(_request: Any, reply: Any) -> None:
        await reply.send_json(200, {"choices": [{"message": {"content": "noon"}}]})

    openai_stub.behave = behave
    body = await sent(
        models,
        openai_stub,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "12:00", "tool_call_id": "call_1"},
        funcs=[{"name": "clock", "description": "Tells the time"}],
    )
    assert body["messages"] == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "12:00", "tool_call_id": "call_1"},
    ]
    parameters = {"type": "object", "properties": {}}
    function = {"name": "clock", "description": "Tells the time", "parameters": parameters}
    assert body["tools"] == [{"type": "function", "function": function}]


async def test_stream_asks_for_usage(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    async for _ in models.stream(endpoint_of(openai_stub), prompt("hello")):
        pass
    body = openai_stub.requests[-1].json
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_rerank_asks_for_the_best(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    async def behave(_request: Any, reply: Any) -> None:
        await reply.send_json(200, {"results": []})

    openai_stub.behave = behave
    await models.rerank(endpoint_of(openai_stub), ranking("a", "b", "c", top_k=2))
    request = openai_stub.requests[-1]
    assert (request.method, request.path) == ("POST", "/v1/rerank")
    assert request.json == {"model": MODEL, "query": "q", "documents": ["a", "b", "c"], "top_n": 2}


async def test_cookies_are_not_kept_for_others(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    """One pool serves all workspaces: what one is given must not be shown for the next."""

    async def behave(_request: Any, reply: Any) -> None:
        await reply.send_json(200, {"choices": [{"message": {"content": "hi"}}]}, {"Set-Cookie": "who=w1; Path=/"})

    openai_stub.behave = behave
    for _ in range(2):
        await models.invoke(endpoint_of(openai_stub), prompt("hello"))
    assert "cookie" not in openai_stub.requests[-1].headers


def test_repr_of_an_endpoint_hides_its_key(openai_stub: OpenAIStub) -> None:
    """INV-9."""
    assert KEY not in repr(endpoint_of(openai_stub))
