"""Counting tokens without calling the model (PROTOCOL 9.1, RUNNERS: CJK)."""

import pytest

from providers.openai import OpenAIProvider
from providers.openai.tokens import MESSAGE_TOKENS, estimate_tokens
from tests.fixtures.openai_stub import MODEL, Behaviour, OpenAIStub, Reply, StubRequest
from tests.providers.model_calls import answers, counted, endpoint_of


def test_estimate_knows_scripts() -> None:
    """Four characters a token would be a third of what Chinese has."""
    assert estimate_tokens(counted("abcd" * 100)) == MESSAGE_TOKENS + 100
    assert estimate_tokens(counted("持久的工作流" * 100)) == MESSAGE_TOKENS + 600
    assert estimate_tokens(counted("ワークフロー" * 100)) == MESSAGE_TOKENS + 600
    assert estimate_tokens(counted("долго" * 100)) == MESSAGE_TOKENS + 250
    assert estimate_tokens(counted("🚀" * 100)) == MESSAGE_TOKENS + 200
    assert estimate_tokens(counted("\ud800\x00" * 4)) == MESSAGE_TOKENS + 5


def test_estimate_counts_parts_calls_and_functions() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://x"}}
    low = {"type": "image_url", "image_url": {"url": "https://x", "detail": "low"}}
    plain = estimate_tokens(counted("hello"))
    with_picture = estimate_tokens(counted({"role": "user", "content": [{"type": "text", "text": "hello"}, picture]}))
    with_low = estimate_tokens(counted({"role": "user", "content": [{"type": "text", "text": "hello"}, low]}))
    assert plain < with_low < with_picture
    assert plain < estimate_tokens(counted("hello", funcs=[{"name": "clock", "parameters": {"type": "object"}}]))


def vllm(count: int) -> Behaviour:
    return answers(200, {"count": count, "max_model_len": 8192, "tokens": list(range(count))})


async def llama_cpp(request: StubRequest, reply: Reply) -> None:
    if request.path == "/apply-template":
        await reply.send_json(200, {"prompt": " ".join(message["content"] for message in request.json["messages"])})
    else:
        await reply.send_json(200, {"tokens": request.json.get("content", "").split()})


async def test_endpoint_that_counts_messages_is_believed(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = vllm(17)
    count = await models.count_tokens(endpoint_of(openai_stub), counted("hello", funcs=[{"name": "clock"}]))
    assert (count.tokens, count.exact) == (17, True)
    request = openai_stub.requests[-1]
    assert (request.path, request.json["model"]) == ("/tokenize", MODEL)
    assert request.json["tools"][0]["function"]["name"] == "clock"


async def test_endpoint_that_counts_text_is_given_its_template(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = llama_cpp
    count = await models.count_tokens(endpoint_of(openai_stub), counted("one two", "three"))
    assert (count.tokens, count.exact) == (3, True)


async def test_endpoint_that_cannot_count_is_not_asked_again(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    for _ in range(3):
        count = await models.count_tokens(endpoint_of(openai_stub), counted("hello"))
        assert (count.tokens, count.exact) == (6, False)
    assert len(openai_stub.requests) == 1


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(answers(500, {}), id="failed"),
        pytest.param(answers(400, {}), id="refused-this-prompt"),
        pytest.param(answers(200, {"error": {"message": "no"}}), id="reported"),
    ],
)
async def test_endpoint_that_fails_to_count_is_asked_again(
    models: OpenAIProvider, openai_stub: OpenAIStub, behave: Behaviour
) -> None:
    openai_stub.behave = behave
    assert not (await models.count_tokens(endpoint_of(openai_stub), counted("hello"))).exact
    openai_stub.behave = vllm(3)
    assert (await models.count_tokens(endpoint_of(openai_stub), counted("hello"))).exact


async def test_pictures_are_estimated(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    """An endpoint would count their placeholder."""
    openai_stub.behave = vllm(3)
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}
    assert not (await models.count_tokens(endpoint_of(openai_stub), counted(picture))).exact
    assert openai_stub.requests == []
