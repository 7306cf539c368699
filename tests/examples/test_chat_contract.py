"""What the stub of the runner's tests and the language model's server both promise."""

import json
from typing import Any

import httpx
import pytest

from tests.examples.servers import ChatServer, user

QUESTION = user("Tell me in two sentences what a durable workflow is.")
WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}

USAGE_SHAPE = {"prompt_tokens": "int", "completion_tokens": "int", "total_tokens": "int"}
CHUNK_SHAPE = {
    "id": "str",
    "object": "str",
    "created": "int",
    "model": "str",
    "choices": [{"index": "int", "delta": {"content": "str"}, "logprobs": "NoneType", "finish_reason": "NoneType"}],
}
WHOLE_SHAPE = {
    "id": "str",
    "object": "str",
    "created": "int",
    "model": "str",
    "choices": [
        {
            "index": "int",
            "message": {"role": "str", "content": "str", "refusal": "NoneType"},
            "logprobs": "NoneType",
            "finish_reason": "str",
        }
    ],
    "usage": USAGE_SHAPE,
}


def shape_of(value: object) -> object:
    """Names and kinds, without contents."""
    if isinstance(value, dict):
        return {name: shape_of(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape_of(item) for item in value]
    return type(value).__name__


def events_of(response: httpx.Response) -> list[Any]:
    assert response.headers["content-type"].startswith("text/event-stream")
    *frames, end, rest = response.text.split("\n\n")
    assert (end, rest) == ("data: [DONE]", "")
    assert all(frame.startswith("data: ") for frame in frames)
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


async def test_stream_has_role_pieces_and_finish(chat_server: ChatServer) -> None:
    events = events_of(await chat_server.post(messages=QUESTION, stream=True))
    first, *pieces, last = events
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(pieces) > 5
    for piece in pieces:
        assert shape_of(piece) == CHUNK_SHAPE
        assert piece["choices"][0]["delta"]["content"]
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    heads = {(event["id"], event["object"], event["created"], event["model"]) for event in events}
    assert heads == {(first["id"], "chat.completion.chunk", first["created"], chat_server.model)}


async def test_stream_ends_with_usage_on_request(chat_server: ChatServer) -> None:
    *chunks, last = events_of(await chat_server.post(messages=QUESTION, **WITH_USAGE))
    assert all(event["usage"] is None for event in chunks)
    assert (last["choices"], shape_of(last["usage"])) == ([], USAGE_SHAPE)
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + last["usage"]["completion_tokens"]


async def test_whole_answer_has_message_and_usage(chat_server: ChatServer) -> None:
    body = (await chat_server.post(messages=QUESTION)).json()
    assert shape_of(body) == WHOLE_SHAPE
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["content"]


async def test_length_limit_is_told_in_a_stream(chat_server: ChatServer) -> None:
    *_, end, counted = events_of(await chat_server.post(messages=QUESTION, max_tokens=2, **WITH_USAGE))
    assert end["choices"][0]["finish_reason"] == "length"
    assert counted["usage"]["completion_tokens"] == 2


async def test_length_limit_is_told_in_a_whole_answer(chat_server: ChatServer) -> None:
    body = (await chat_server.post(messages=QUESTION, max_tokens=2)).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        pytest.param({"messages": []}, 400, "invalid_value", "messages", id="no-messages"),
        pytest.param({"messages": QUESTION, "model": "x"}, 404, "model_not_found", "model", id="no-model"),
        pytest.param(
            {"messages": user("one two " * 5_000) * 3},
            400,
            "context_length_exceeded",
            "messages",
            id="too-long",
        ),
    ],
)
async def test_refusals_name_code_and_parameter(
    chat_server: ChatServer, body: dict[str, Any], status: int, code: str, param: str
) -> None:
    response = await chat_server.post(**body)
    error = response.json()["error"]
    assert error.pop("message")
    assert error == {"type": "invalid_request_error", "code": code, "param": param}
    assert response.status_code == status


async def test_invalid_json_is_refused(chat_server: ChatServer) -> None:
    async with chat_server.client() as client:
        response = await client.post("/chat/completions", content=b'{"model":')
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_value"


async def test_models_are_listed(chat_server: ChatServer) -> None:
    body = (await chat_server.get("/models")).json()
    card = {"id": "str", "object": "str", "created": "int", "owned_by": "str"}
    assert shape_of(body) == {"object": "str", "data": [card]}
    assert body["data"][0]["id"] == chat_server.model


async def test_unknown_path_is_an_error_body_too(chat_server: ChatServer) -> None:
    response = await chat_server.get("/nothing")
    assert response.status_code == 404
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}
