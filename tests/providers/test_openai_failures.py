"""How calls of models fail, and that nothing secret is told (PROTOCOL 10, INV-9)."""

import asyncio
import socket
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from providers.errors import AnswerTooLarge, ProviderError, ProviderTimeout
from providers.models import NoModels
from providers.openai import OpenAIProvider, transport
from tests.fixtures.openai_stub import OpenAIStub, Reply, StubRequest, chunk, error_body
from tests.providers.model_calls import KEY, answers, counted, endpoint_of, prompt, ranking


async def failure_of(models: OpenAIProvider, stub: OpenAIStub, **changes: Any) -> ProviderError:
    """Call, and return the error; whatever is said of it must not hold the key."""
    with pytest.raises(ProviderError) as caught:
        await models.invoke(endpoint_of(stub, **changes), prompt("hello"))
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told
    return caught.value


@pytest.mark.parametrize(
    ("status", "is_retryable"),
    [*((status, False) for status in (400, 401, 403, 404, 413, 422)), *((s, True) for s in (408, 429, 500, 502, 503))],
)
async def test_status_says_whether_to_try_again(
    models: OpenAIProvider, openai_stub: OpenAIStub, status: int, is_retryable: bool
) -> None:
    openai_stub.behave = answers(status, error_body(f"wrong {KEY}"))
    error = await failure_of(models, openai_stub)
    assert error.retryable is is_retryable
    assert str(status) in error.message
    assert len(openai_stub.requests) == 1


async def test_what_the_provider_says_is_quoted_without_the_key(
    models: OpenAIProvider, openai_stub: OpenAIStub
) -> None:
    openai_stub.behave = answers(400, error_body(f"bad\n key {KEY} {'x' * 5_000}"))
    error = await failure_of(models, openai_stub)
    assert "says: bad key [secret] xxx" in error.message
    assert len(error.message) < 400


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_key_is_never_quoted(models: OpenAIProvider, openai_stub: OpenAIStub, status: int) -> None:
    """Providers repeat parts of a key, which no comparison finds."""
    openai_stub.behave = answers(status, error_body(f"Incorrect key {KEY[:9]}***"))
    error = await failure_of(models, openai_stub)
    assert KEY[:9] not in error.message
    assert "check the key" in error.message


@pytest.mark.parametrize(
    ("value", "expected"),
    [("7", 7.0), ("0.5", 0.5), ("soon", None), ("-1", None), ("999999999", 86_400.0), (None, None)],
)
async def test_retry_after_is_kept(
    models: OpenAIProvider, openai_stub: OpenAIStub, value: str | None, expected: float | None
) -> None:
    openai_stub.behave = answers(429, error_body("slow down"), {"Retry-After": value} if value else None)
    assert (await failure_of(models, openai_stub)).retry_after_seconds == expected


async def test_retry_after_may_be_a_date(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    openai_stub.behave = answers(503, error_body("later"), {"Retry-After": moment})
    seconds = (await failure_of(models, openai_stub)).retry_after_seconds
    assert seconds is not None
    assert 3_000 < seconds <= 3_600


async def test_redirect_is_not_followed(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    """An endpoint must not send the host, and the key with it, to another address."""
    openai_stub.behave = answers(307, {}, {"Location": f"{openai_stub.root}/elsewhere"})
    error = await failure_of(models, openai_stub)
    assert "not followed" in error.message
    assert not error.retryable
    assert [request.path for request in openai_stub.requests] == ["/v1/chat/completions"]


async def test_endpoint_that_is_not_there_may_come_back(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = await failure_of(models, openai_stub, base_url=f"http://127.0.0.1:{port}/v1")
    assert error.retryable
    assert "cannot be reached" in error.message


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"base_url": "http://[::bad"}, id="no-address"),
        pytest.param({"base_url": "ftp://example.com"}, id="no-http"),
        pytest.param({"api_key": f"{KEY}\r\nX-Other: 1"}, id="header-injection"),
        pytest.param({"api_key": f"{KEY}é"}, id="no-ascii"),
    ],
)
async def test_address_or_key_that_cannot_be_used_is_no_matter_of_time(
    models: OpenAIProvider, openai_stub: OpenAIStub, changes: dict[str, Any]
) -> None:
    assert not (await failure_of(models, openai_stub, **changes)).retryable
    assert openai_stub.requests == []


async def test_silence_ends_the_call(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    left = asyncio.Event()

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.until_disconnected()
        left.set()

    openai_stub.behave = behave
    error = await failure_of(models, openai_stub, timeout_seconds=0.2)
    assert isinstance(error, ProviderTimeout)
    assert error.retryable
    await left.wait()


async def test_silence_within_a_stream_ends_it(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("A ")
        await reply.until_disconnected()

    openai_stub.behave = behave
    with pytest.raises(ProviderTimeout):
        async for _ in models.stream(endpoint_of(openai_stub, timeout_seconds=0.2), prompt("hello")):
            pass


async def test_connection_that_breaks_is_told(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.send_head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
        reply.reset()

    openai_stub.behave = behave
    error = await failure_of(models, openai_stub)
    assert error.retryable
    assert "broke off" in error.message


@pytest.mark.parametrize("cancels", [1, 2, 5])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_cancelled_call_closes_its_connection(
    models: OpenAIProvider, openai_stub: OpenAIStub, is_streamed: bool, cancels: int
) -> None:
    """F-16: the model's work ends with the call that nobody waits for, also when several cancel it at once."""
    began, left = asyncio.Event(), asyncio.Event()

    async def behave(_request: StubRequest, reply: Reply) -> None:
        if is_streamed:
            await reply.start_stream()
            await reply.send_words("A ")
        else:
            began.set()
        await reply.until_disconnected()
        left.set()

    async def call() -> None:
        if is_streamed:
            async for _ in models.stream(endpoint_of(openai_stub), prompt("hello")):
                began.set()
        await models.invoke(endpoint_of(openai_stub), prompt("hello"))

    openai_stub.behave = behave
    task = asyncio.create_task(call())
    await began.wait()
    for _ in range(cancels):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await left.wait()


async def test_closed_stream_closes_its_connection(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    left = asyncio.Event()

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("A ")
        await reply.until_disconnected()
        left.set()

    openai_stub.behave = behave
    events = models.stream(endpoint_of(openai_stub), prompt("hello"))
    assert (await anext(events)).chunk is not None
    await events.aclose()
    await left.wait()


async def test_answer_over_the_limit_is_not_read_on(
    models: OpenAIProvider, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-16."""
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 100_000)
    openai_stub.behave = answers(200, {"choices": [{"message": {"content": "x" * 200_000}}]})
    assert isinstance(await failure_of(models, openai_stub), AnswerTooLarge)


async def test_stream_over_the_limit_ends(
    models: OpenAIProvider, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-16."""
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 100_000)
    ended = asyncio.Event()

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        try:
            while True:
                await reply.send_event(chunk({"content": "x" * 1_000}))
        finally:
            ended.set()

    openai_stub.behave = behave
    with pytest.raises(AnswerTooLarge):
        async for _ in models.stream(endpoint_of(openai_stub), prompt("hello")):
            pass
    await ended.wait()


async def test_web_page_is_no_stream(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.send_text(200, "<html>", "text/html")

    openai_stub.behave = behave
    with pytest.raises(ProviderError, match="web page"):
        async for _ in models.stream(endpoint_of(openai_stub), prompt("hello")):
            pass


async def test_calls_run_beside_each_other(models: OpenAIProvider, openai_stub: OpenAIStub) -> None:
    calls = (models.invoke(endpoint_of(openai_stub), prompt("hello")) for _ in range(50))
    assert len(await asyncio.gather(*calls)) == 50


async def test_process_without_models_says_so(openai_stub: OpenAIStub) -> None:
    models, endpoint = NoModels(), endpoint_of(openai_stub)
    with pytest.raises(ProviderError, match="without a model provider"):
        await models.invoke(endpoint, prompt("hello"))
    with pytest.raises(ProviderError):
        await anext(models.stream(endpoint, prompt("hello")))
    with pytest.raises(ProviderError):
        await models.rerank(endpoint, ranking("a"))
    with pytest.raises(ProviderError):
        await models.count_tokens(endpoint, counted("hello"))
