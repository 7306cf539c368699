"""Models through the host API: registry, errors, and what calls cost (PROTOCOL 9.1, D-32)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from host_api.authorization import Authorization
from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.methods import models as methods
from host_api.services import HostServices
from providers.openai import OpenAIProvider
from runhost.protocol import ErrorCode, Usage
from runhost.protocol.host_api import InvokeModelParams, ModelStreamEvent
from stores.attempts import AttemptStore
from stores.errors import ModelNotFound
from stores.models import ModelStore
from tests.fixtures.host import Host
from tests.fixtures.openai_stub import MODEL, WORDS, OpenAIStub, Reply, StubRequest, error_body
from tests.host_api.conftest import GrantedRun, NewRun
from tests.providers.model_calls import KEY, answers

HELLO = [{"role": "user", "content": "hello"}]
PROMPT_TOKENS = 5


@pytest.fixture
async def services(services: HostServices) -> AsyncIterator[HostServices]:
    """The services of all tests, with a provider of models."""
    async with OpenAIProvider() as models:
        yield replace(services, models=models)


@pytest.fixture
async def registered(run: GrantedRun, openai_stub: OpenAIStub) -> GrantedRun:
    """A run whose model is in the registry."""
    await register(run, openai_stub)
    return run


async def register(run: GrantedRun, stub: OpenAIStub, **changes: Any) -> None:
    model = {"model_id": "m1", "name": "One", "base_url": stub.base_url, "model_name": MODEL, "api_key": KEY}
    async with run.host.engine.begin() as connection:
        await ModelStore(connection, run.row.workspace_id).put(model | changes)


async def stream(
    run: GrantedRun, method: MethodDefinition = methods.invoke_llm_stream_events
) -> list[ModelStreamEvent]:
    params = InvokeModelParams.model_validate({"llm_model_uuid": "m1", "messages": HELLO})
    method.requirement.check(run.authorization, params)
    return [event async for event in method.run(run.call(), params)]


async def refusal(run: GrantedRun, method: MethodDefinition, **params: Any) -> HostCallError:
    with pytest.raises(HostCallError) as caught:
        await run.ask(method, **params)
    return caught.value


async def tokens(host: Host, run: GrantedRun) -> int | None:
    """Return what the run has used, as its readers see it."""
    usage = (await host.run(str(run.run_id))).usage
    return usage.total_tokens if usage else None


@pytest.mark.parametrize("method", [methods.invoke_llm, methods.invoke_llm_with_usage])
async def test_model_is_invoked(registered: GrantedRun, openai_stub: OpenAIStub, method: MethodDefinition) -> None:
    answer = await registered.ask(method, llm_model_uuid="m1", messages=HELLO)
    assert answer.message.content == "".join(WORDS)
    assert answer.usage.total_tokens == PROMPT_TOKENS + len(WORDS)
    assert openai_stub.requests[-1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("method", [methods.invoke_llm_stream, methods.invoke_llm_stream_events])
async def test_model_is_streamed(registered: GrantedRun, method: MethodDefinition) -> None:
    *pieces, last = await stream(registered, method)
    assert "".join(str(event.chunk.content or "") for event in pieces if event.chunk) == "".join(WORDS)
    assert last.usage is not None


async def test_default_arguments_of_the_model_are_sent(run: GrantedRun, openai_stub: OpenAIStub) -> None:
    await register(run, openai_stub, default_args={"temperature": 0.25})
    await run.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    assert openai_stub.requests[-1].json["temperature"] == 0.25


async def test_documents_are_put_in_order(registered: GrantedRun, openai_stub: OpenAIStub) -> None:
    results = [{"index": place, "relevance_score": place / 10} for place in range(3)]
    openai_stub.behave = answers(200, {"results": results})
    ranked = await registered.ask(
        methods.invoke_rerank, rerank_model_id="m1", query="q", documents=["a", "b", "c"], top_k=1
    )
    assert [score.index for score in ranked.scores] == [2]


async def test_tokens_are_counted(registered: GrantedRun) -> None:
    count = await registered.ask(methods.count_tokens, llm_model_uuid="m1", messages=HELLO)
    assert (count.tokens, count.exact) == (6, False)


@pytest.mark.parametrize(
    ("operations", "method", "is_granted"),
    [
        (["invoke"], methods.invoke_llm, True),
        (["stream"], methods.invoke_llm, False),
        (["rerank"], methods.invoke_llm_with_usage, False),
        (["stream"], methods.count_tokens, True),
        (["rerank"], methods.count_tokens, False),
    ],
)
async def test_operation_must_be_granted(
    registered: GrantedRun, operations: list[str], method: MethodDefinition, *, is_granted: bool
) -> None:
    """H-A4."""
    granted = {"resources": {"models": [{"model_id": "m1", "operations": operations}]}}
    narrowed = Authorization.model_validate(registered.authorization.model_dump() | granted)
    params = {"llm_model_uuid": "m1", "messages": HELLO}
    if is_granted:
        await registered.ask(method, authorization=narrowed, **params)
    else:
        error = await refusal(registered, method, authorization=narrowed, **params)
        assert error.code == ErrorCode.UNAUTHORIZED


async def test_model_that_is_gone_is_not_found(run: GrantedRun) -> None:
    with pytest.raises(ModelNotFound):
        await run.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)


async def test_model_that_is_disabled_is_not_found(run: GrantedRun, openai_stub: OpenAIStub) -> None:
    await register(run, openai_stub, enabled=False)
    error = await refusal(run, methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    assert error.code == ErrorCode.NOT_FOUND


async def test_model_of_another_workspace_is_not_found(
    registered: GrantedRun, new_run: NewRun, openai_stub: OpenAIStub
) -> None:
    """The same id elsewhere is another model."""
    foreign = await new_run(workspace_id="w2")
    with pytest.raises(ModelNotFound):
        await foreign.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    assert openai_stub.requests == []


@pytest.mark.parametrize(
    ("status", "headers", "is_retryable", "seconds"),
    [(429, {"Retry-After": "3"}, True, 3.0), (503, {}, True, None), (400, {}, False, None)],
)
async def test_failure_of_the_provider_is_a_runtime_error(
    registered: GrantedRun,
    openai_stub: OpenAIStub,
    status: int,
    headers: dict[str, str],
    seconds: float | None,
    *,
    is_retryable: bool,
) -> None:
    """PROTOCOL 10; and the key is in none of it (INV-9)."""
    openai_stub.behave = answers(status, error_body(f"no {KEY}"), headers)
    error = await refusal(registered, methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    assert (error.code, error.retryable) == (ErrorCode.RUNTIME_ERROR, is_retryable)
    assert error.retry_after_seconds == seconds
    assert KEY not in error.message


async def test_reserved_argument_is_invalid(registered: GrantedRun) -> None:
    error = await refusal(
        registered, methods.invoke_llm, llm_model_uuid="m1", messages=HELLO, extra_args={"model": "other"}
    )
    assert error.code == ErrorCode.INVALID_ARGUMENT
    assert error.details == {"field": "extra_args.model"}


async def test_usage_of_every_call_is_summed(host: Host, registered: GrantedRun) -> None:
    """D-32: the calls of a runner that reports nothing are counted all the same."""
    assert await tokens(host, registered) is None
    await registered.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    await stream(registered)
    once = PROMPT_TOKENS + len(WORDS)
    assert await tokens(host, registered) == 2 * once
    later = await registered.next_attempt()
    await later.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    assert await tokens(host, later) == 3 * once
    async with host.engine.connect() as connection:
        attempts = await AttemptStore(connection).list(later.row.workspace_id, later.run_id)
    assert [attempt.usage.total_tokens for attempt in attempts if attempt.usage] == [2 * once, once]


async def test_usage_that_is_unknown_stays_unknown(host: Host, registered: GrantedRun, openai_stub: OpenAIStub) -> None:
    """D-32: null, never 0."""
    openai_stub.behave = answers(200, {"choices": [{"message": {"content": "hi"}}]})
    await registered.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    assert await tokens(host, registered) is None


@pytest.mark.parametrize(("reported", "expected"), [(5, PROMPT_TOKENS + len(WORDS)), (500, 500)])
async def test_usage_that_the_runner_reports_is_not_counted_twice(
    host: Host, registered: GrantedRun, reported: int, expected: int
) -> None:
    """A result reports the tokens that led to it, those of calls through the host among them (D-32)."""
    from activities.journal import AttemptJournal
    from stores.attempts import OpenAttempt
    from stores.journal import JournalStore
    from stores.notifications import LedgerAnnouncer

    await registered.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    pool = registered.services.pool
    opened = OpenAttempt(registered.row, registered.attempt, registered.token)
    journal = AttemptJournal(host.engine, JournalStore(pool), LedgerAnnouncer(pool), opened)
    await journal.add(
        {
            "run_id": str(registered.run_id),
            "type": "message.completed",
            "data": {"message": {"role": "assistant", "content": "hi"}},
            "usage": Usage(total_tokens=reported).model_dump(exclude_none=True),
        }
    )
    assert await tokens(host, registered) == expected


async def test_calls_and_results_at_once_lose_no_usage(host: Host, registered: GrantedRun) -> None:
    """D-32: neither the journal nor a call overwrites what the other has written."""
    calls = (registered.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO) for _ in range(20))
    await asyncio.gather(*calls)
    assert await tokens(host, registered) == 20 * (PROMPT_TOKENS + len(WORDS))


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_answer_that_comes_after_the_attempt_is_refused(
    registered: GrantedRun, openai_stub: OpenAIStub, *, is_streamed: bool
) -> None:
    """INV-5: between gate and answer the token died."""
    answer_properly = openai_stub.behave

    async def behave(request: StubRequest, reply: Reply) -> None:
        await registered.next_attempt()
        await answer_properly(request, reply)

    openai_stub.behave = behave
    asked = registered.ask(methods.invoke_llm, llm_model_uuid="m1", messages=HELLO)
    with pytest.raises(HostCallError) as caught:
        await (stream(registered) if is_streamed else asked)
    asked.close()
    assert caught.value.code == ErrorCode.UNAUTHORIZED


async def test_closed_stream_ends_the_work_of_the_model(registered: GrantedRun, openai_stub: OpenAIStub) -> None:
    left = asyncio.Event()

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_words("A ")
        await reply.until_disconnected()
        left.set()

    openai_stub.behave = behave
    params = InvokeModelParams.model_validate({"llm_model_uuid": "m1", "messages": HELLO})
    events = methods.invoke_llm_stream.run(registered.call(), params)
    await anext(events)
    await events.aclose()
    await left.wait()
