"""Models: invoke, stream, rerank, count (PROTOCOL 9.1).

The two methods of a pair differ in what the runner's side hands on; on the wire both carry usage.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from host_api.definition import Call, host_method, host_stream
from host_api.errors import not_found
from host_api.provided import provided
from host_api.requirements import Granted
from host_api.scopes import fence_of, fenced
from providers.models import ModelEndpoint
from runhost.protocol import Usage
from runhost.protocol.host_api import (
    CountTokensParams,
    InvokeModelParams,
    ModelAnswer,
    ModelStreamEvent,
    RerankParams,
    RerankResult,
    TokenCount,
)
from stores.model_usage import ModelUsageStore
from stores.models import ModelStore

_INVOKE: Final = Granted("model", "llm_model_uuid", frozenset({"invoke"}))
_STREAM: Final = Granted("model", "llm_model_uuid", frozenset({"stream"}))


@host_method("invoke_llm", _INVOKE)
async def invoke_llm(call: Call, params: InvokeModelParams) -> ModelAnswer:
    """Answer with a whole message."""
    return await _invoke(call, params)


@host_method("invoke_llm_with_usage", _INVOKE)
async def invoke_llm_with_usage(call: Call, params: InvokeModelParams) -> ModelAnswer:
    """Answer with a whole message, and its usage where the provider gives it."""
    return await _invoke(call, params)


@host_stream("invoke_llm_stream", _STREAM)
async def invoke_llm_stream(call: Call, params: InvokeModelParams) -> AsyncGenerator[ModelStreamEvent, None]:
    """Stream a message."""
    async with aclosing(_stream(call, params)) as events:
        async for event in events:
            yield event


@host_stream("invoke_llm_stream_events", _STREAM)
async def invoke_llm_stream_events(call: Call, params: InvokeModelParams) -> AsyncGenerator[ModelStreamEvent, None]:
    """Stream a message, and its usage where the provider gives it."""
    async with aclosing(_stream(call, params)) as events:
        async for event in events:
            yield event


@host_method("invoke_rerank", Granted("model", "rerank_model_id", frozenset({"rerank"})))
async def invoke_rerank(call: Call, params: RerankParams) -> RerankResult:
    """Put documents in order."""
    endpoint = await _endpoint(call, params.rerank_model_id)
    with provided():
        result = await call.services.models.rerank(endpoint, params)
    await _count_in(call, params.rerank_model_id, result.usage)
    return result


@host_method("count_tokens", Granted("model", "llm_model_uuid", frozenset({"invoke", "stream"})))
async def count_tokens(call: Call, params: CountTokensParams) -> TokenCount:
    """Count the tokens of a prompt."""
    endpoint = await _endpoint(call, params.llm_model_uuid)
    with provided():
        return await call.services.models.count_tokens(endpoint, params)


async def _invoke(call: Call, params: InvokeModelParams) -> ModelAnswer:
    endpoint = await _endpoint(call, params.llm_model_uuid)
    with provided():
        answer = await call.services.models.invoke(endpoint, params)
    await _count_in(call, params.llm_model_uuid, answer.usage)
    return answer


async def _stream(call: Call, params: InvokeModelParams) -> AsyncGenerator[ModelStreamEvent, None]:
    endpoint = await _endpoint(call, params.llm_model_uuid)
    with provided():
        async with aclosing(call.services.models.stream(endpoint, params)) as events:
            async for event in events:
                # Before it is told, so that no runner knows of usage that the host does not.
                await _count_in(call, params.llm_model_uuid, event.usage)
                yield event


async def _count_in(call: Call, model_id: str, usage: Usage | None) -> None:
    """Journal what a call has used, where that is known (D-32).

    Raises:
        HostCallError: `unauthorized`: the attempt ended while the model was at work, and may do no more.
    """
    if usage is not None:
        with fenced():
            await ModelUsageStore(call.services.pool).record(fence_of(call.session), model_id, usage)


async def _endpoint(call: Call, model_id: str) -> ModelEndpoint:
    """Return where a granted model is.

    Raises:
        ModelNotFound: It is no longer in the workspace.
        HostCallError: `not_found`: it was disabled.
    """
    async with call.services.engine.connect() as connection:
        model = await ModelStore(connection, call.session.workspace_id).get(model_id)
    if not model.enabled:
        raise not_found(f"Model {model_id!r} is disabled.")
    return ModelEndpoint(
        base_url=model.base_url,
        model_name=model.model_name,
        api_key=model.api_key,
        default_args=model.default_args,
        timeout_seconds=model.timeout_seconds,
        context_window_tokens=model.context_window_tokens,
    )
