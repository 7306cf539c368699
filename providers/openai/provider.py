"""`ModelProvider` over any OpenAI-compatible endpoint."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Self

from providers.models import ModelEndpoint
from providers.openai.answers import ChunkReader, broken, read_answer, read_scores
from providers.openai.counting import TokenCounter
from providers.openai.requests import chat_body, rerank_body
from providers.openai.transport import EndpointTransport, build_client, secrets_of
from runhost.protocol.host_api import (
    CountTokensParams,
    InvokeModelParams,
    ModelAnswer,
    ModelStreamEvent,
    RerankParams,
    RerankResult,
    TokenCount,
)

_END_MARK = b"[DONE]"


class OpenAIProvider:
    """Calls models of OpenAI-compatible endpoints over one pool of connections; enter it as a context.

    See `providers.models.ModelProvider`. One per process serves any number of endpoints and calls at once.
    """

    def __init__(self) -> None:
        self._client = build_client()
        self._transport = EndpointTransport(self._client)
        self._counter = TokenCounter(self._transport)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, place)

    async def invoke(
        self, endpoint: ModelEndpoint, params: InvokeModelParams, *, idempotency_key: str | None = None
    ) -> ModelAnswer:
        """Return a whole answer.

        Raises:
            ProviderError: There is none.
        """
        body = chat_body(endpoint, params, stream=False)
        answer = await self._transport.post(endpoint, _chat_url(endpoint), body, idempotency_key=idempotency_key)
        return read_answer(answer, secrets_of(endpoint))

    async def stream(
        self, endpoint: ModelEndpoint, params: InvokeModelParams, *, idempotency_key: str | None = None
    ) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield an answer as it comes; its usage, where the endpoint tells it, is the last event.

        Raises:
            ProviderError: It does not become whole; what was yielded before stands.
        """
        body = chat_body(endpoint, params, stream=True)
        reader = ChunkReader(secrets_of(endpoint))
        events = self._transport.events(endpoint, _chat_url(endpoint), body, idempotency_key=idempotency_key)
        async with aclosing(events):
            async for data in events:
                if data.strip() == _END_MARK:
                    reader.is_finished = True
                    break
                if (chunk := reader.read(data)) is not None:
                    yield ModelStreamEvent(chunk=chunk)
        if not reader.is_finished:
            raise broken("ended its answer before the model said that it was done")
        if reader.usage is not None:
            yield ModelStreamEvent(usage=reader.usage)

    async def rerank(
        self, endpoint: ModelEndpoint, params: RerankParams, *, idempotency_key: str | None = None
    ) -> RerankResult:
        """Return scores, best first, at most ``params.top_k``.

        Raises:
            ProviderError: There are none.
        """
        url = f"{endpoint.base_url.rstrip('/')}/rerank"
        body = rerank_body(endpoint, params)
        answer = await self._transport.post(endpoint, url, body, idempotency_key=idempotency_key)
        return read_scores(answer, params, secrets_of(endpoint))

    async def count_tokens(self, endpoint: ModelEndpoint, params: CountTokensParams) -> TokenCount:
        """Count the tokens of a prompt, or estimate them where the endpoint does not count. Never fails."""
        return await self._counter.count(endpoint, params)


def _chat_url(endpoint: ModelEndpoint) -> str:
    return f"{endpoint.base_url.rstrip('/')}/chat/completions"
