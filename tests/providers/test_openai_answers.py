"""What is read from an endpoint's answers (PROTOCOL 9.1, D-32)."""

from typing import Any

import pytest

from providers.errors import ProviderError
from providers.openai import OpenAIProvider
from runhost.protocol.host_api import ModelStreamEvent
from tests.fixtures.openai_stub import WORDS, OpenAIStub, Reply, StubRequest, chunk, completion, usage_of
from tests.providers.model_calls import answers, endpoint_of, prompt, ranking, streams


async def events_of(models: OpenAIProvider, stub: OpenAIStub) -> list[ModelStreamEvent]:
    return [event async for event in models.stream(endpoint_of(stub), prompt("hello"))]


def text_of(events: list[ModelStreamEvent]) -> str:
    return "".join(str(event.chunk.content) for event in events if event.chunk and event.chunk.content)


async def test_answer_is_a_message_with_usage(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    answer = await models.invoke(endpoint_of(openai_stub), prompt("hello"))
    assert (answer.message.role, answer.message.content) == ("assistant", "".join(WORDS))
    assert answer.usage is not None
    assert answer.usage.total_tokens == 5 + len(WORDS)


async def test_usage_keeps_what_the_provider_tells(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    """PROTOCOL 9.1: details and cache counters must not be dropped."""
    told = {
        **usage_of(10, 5),
        "prompt_tokens_details": {"cached_tokens": 3, "audio": {"n": 1}},
        "completion_tokens_details": {"reasoning_tokens": 2},
        "input_token_details": {"a": 1},
        "output_token_details": {"b": 2},
        "cache_creation_input_tokens": 4,
        "cache_read_input_tokens": 6,
    }
    openai_stub.behave = answers(200, completion("hi", usage=told))
    answer = await models.invoke(endpoint_of(openai_stub), prompt("hello"))
    assert answer.usage is not None
    assert answer.usage.model_dump() == told


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({}, None, id="empty"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None, id="zeros"),
        pytest.param({"prompt_tokens": "many"}, None, id="no-counts"),
        pytest.param({"prompt_tokens": 7, "completion_tokens": 2}, (7, 2, 9), id="total-missing"),
        pytest.param({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 0}, (7, 2, 9), id="total-zero"),
        pytest.param({"input_tokens": 7, "output_tokens": 2}, (7, 2, 9), id="other-names"),
        pytest.param({"total_tokens": 9}, (None, None, 9), id="total-only"),
    ],
)
async def test_usage_unknown_is_null(
    models: OpenAIProvider, openai_stub: OpenAIStub, told: object, expected: tuple[int | None, ...] | None
) -> None:
    openai_stub.behave = answers(200, completion("hi", usage=told))
    usage = (await models.invoke(endpoint_of(openai_stub), prompt("hello"))).usage
    found = None if usage is None else (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    assert found == expected


async def test_tool_calls_are_read(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": '{"zone":"UTC"}'}}
    openai_stub.behave = answers(200, {"choices": [{"message": {"content": None, "tool_calls": [call]}}]})
    message = (await models.invoke(endpoint_of(openai_stub), prompt("hello"))).message
    assert message.content is None
    assert [found.model_dump() for found in message.tool_calls or ()] == [call]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"choices": []}, id="no-choice"),
        pytest.param({"choices": [{"message": None}]}, id="no-message"),
        pytest.param([1], id="no-object"),
    ],
)
async def test_answer_without_message_is_an_error(
    models: OpenAIProvider, openai_stub: OpenAIStub, body: object
) -> None:
    openai_stub.behave = answers(200, body)
    with pytest.raises(ProviderError):
        await models.invoke(endpoint_of(openai_stub), prompt("hello"))


async def test_stream_yields_pieces_then_usage_alone(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    """PROTOCOL 9.1: a stream may end with one usage-only event."""
    *pieces, last = await events_of(models, openai_stub)
    assert text_of(pieces) == "".join(WORDS)
    assert all(piece.usage is None for piece in pieces)
    assert last.chunk is None
    assert last.usage is not None
    assert last.usage.completion_tokens == len(WORDS)
    final = [piece.chunk for piece in pieces if piece.chunk and piece.chunk.is_final]
    assert [piece.finish_reason for piece in final] == ["stop"]


async def test_stream_without_usage_ends_without(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = streams(chunk({"content": "hi"}), chunk({}, "stop"))
    events = await events_of(models, openai_stub)
    assert text_of(events) == "hi"
    assert all(event.usage is None for event in events)


async def test_fragments_of_tool_calls_carry_their_ids(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    def fragment(index: int, arguments: str, **first: Any) -> dict[str, Any]:
        function = {"arguments": arguments} | ({"name": first["name"]} if "name" in first else {})
        return {"index": index, "function": function} | ({"id": first["id"]} if "id" in first else {})

    openai_stub.behave = streams(
        chunk({"tool_calls": [fragment(0, "", id="call_a", name="clock")]}),
        chunk({"tool_calls": [fragment(0, '{"zone":')]}),
        chunk({"tool_calls": [fragment(1, "{}", name="date")]}),
        chunk({"tool_calls": [fragment(0, '"UTC"}'), fragment(1, "")]}),
        chunk({}, "tool_calls"),
    )
    events = await events_of(models, openai_stub)
    arguments: dict[str, str] = {}
    names: dict[str, str] = {}
    for event in events:
        for call in (event.chunk and event.chunk.tool_calls) or ():
            arguments[call.id] = arguments.get(call.id, "") + call.function.arguments
            names[call.id] = names.get(call.id, "") + call.function.name
    (made_up,) = arguments.keys() - {"call_a"}
    assert arguments == {"call_a": '{"zone":"UTC"}', made_up: "{}"}
    assert names == {"call_a": "clock", made_up: "date"}


async def test_endpoint_that_does_not_stream_is_read_all_the_same(
    models: OpenAIProvider, openai_stub: OpenAIStub
) -> None:
    openai_stub.behave = answers(200, completion("hi", usage=usage_of(1, 1)))
    *pieces, last = await events_of(models, openai_stub)
    assert text_of(pieces) == "hi"
    assert last.usage is not None


async def test_error_document_is_no_stream(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = answers(200, {"error": {"message": "no such model", "code": 404}})
    with pytest.raises(ProviderError, match="no such model") as caught:
        await events_of(models, openai_stub)
    assert not caught.value.retryable


async def test_stream_that_breaks_off_is_an_error(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = streams(chunk({"content": "hi"}), ending=None)
    events = models.stream(endpoint_of(openai_stub), prompt("hello"))
    assert text_of([await anext(events)]) == "hi"
    with pytest.raises(ProviderError, match="before the model said that it was done") as caught:
        await anext(events)
    assert caught.value.retryable


async def test_error_within_a_stream_is_told(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    openai_stub.behave = streams(chunk({"content": "hi"}), {"error": {"message": "overloaded"}}, ending=None)
    with pytest.raises(ProviderError, match="reports: overloaded") as caught:
        await events_of(models, openai_stub)
    assert caught.value.retryable


async def test_text_of_every_language_arrives(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    """D-31: cut anywhere by the network, and with a NUL in it."""
    text = "持久 ワークフロー \x00 👩‍🚀"

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        for byte in f'data: {{"choices":[{{"delta":{{"content":"{text}"}}}}]}}\n\n'.replace("\x00", "\\u0000").encode():
            await reply.send_raw(bytes([byte]))
        await reply.end_stream()

    openai_stub.behave = behave
    assert text_of(await events_of(models, openai_stub)) == text


async def test_scores_are_put_in_order(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    results = [{"index": place, "relevance_score": score} for place, score in enumerate((0.1, 0.9, 0.5))]
    openai_stub.behave = answers(200, {"results": results, "usage": {"total_tokens": 12}})
    ranked = await models.rerank(endpoint_of(openai_stub), ranking("a", "b", "c", top_k=2))
    assert [(score.index, score.relevance_score) for score in ranked.scores] == [(1, 0.9), (2, 0.5)]
    assert ranked.usage is not None
    assert ranked.usage.total_tokens == 12


@pytest.mark.parametrize(
    "result",
    [
        pytest.param({"index": 3, "relevance_score": 0.5}, id="no-such-document"),
        pytest.param({"index": -1, "relevance_score": 0.5}, id="negative"),
        pytest.param({"index": 0, "relevance_score": "good"}, id="no-number"),
        pytest.param({"index": True, "relevance_score": 1}, id="bool"),
        pytest.param("best", id="no-object"),
    ],
)
async def test_scores_of_other_documents_are_an_error(
    models: OpenAIProvider, openai_stub: OpenAIStub, result: object
) -> None:
    openai_stub.behave = answers(200, {"results": [result]})
    with pytest.raises(ProviderError, match="scores that are not of the documents"):
        await models.rerank(endpoint_of(openai_stub), ranking("a", "b", "c"))
