"""What the host asks of a model, whoever provides it (PROTOCOL 9.1)."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from providers.errors import NotConfigured
from runhost.protocol import JsonObject
from runhost.protocol.host_api import (
    CountTokensParams,
    InvokeModelParams,
    ModelAnswer,
    ModelStreamEvent,
    RerankParams,
    RerankResult,
    TokenCount,
)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model and where it is.

    Attributes:
        base_url: Address of the interface, such as `https://api.example.com/v1`.
        model_name: What the provider calls the model.
        api_key: What the provider knows us by. A secret.
        default_args: Arguments of every call, which those of a call override.
        timeout_seconds: How long to wait for an answer, and between two pieces of a streamed one.
        context_window_tokens: Size of its context window, where known.
    """

    base_url: str
    model_name: str
    api_key: str | None = field(default=None, repr=False)
    default_args: JsonObject = field(default_factory=dict)
    timeout_seconds: float = 120.0
    context_window_tokens: int | None = None


class ModelProvider(Protocol):
    """Calls models. Each method raises `ProviderError`, and cancelling one ends the work on the other side.

    Nothing is sent twice: who calls decides whether to call again. ``idempotency_key`` is passed on for that.
    """

    async def invoke(
        self, endpoint: ModelEndpoint, params: InvokeModelParams, *, idempotency_key: str | None = None
    ) -> ModelAnswer:
        """Return a whole answer."""
        ...

    def stream(
        self, endpoint: ModelEndpoint, params: InvokeModelParams, *, idempotency_key: str | None = None
    ) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield an answer as it comes; its usage, where the provider tells it, is the last event."""
        ...

    async def rerank(
        self, endpoint: ModelEndpoint, params: RerankParams, *, idempotency_key: str | None = None
    ) -> RerankResult:
        """Return scores, best first, at most ``params.top_k``."""
        ...

    async def count_tokens(self, endpoint: ModelEndpoint, params: CountTokensParams) -> TokenCount:
        """Count the tokens of a prompt, or estimate them where the provider does not count."""
        ...


class NoModels:
    """Stands where a process calls no models; every call raises `NotConfigured`."""

    async def invoke(
        self, endpoint: ModelEndpoint, params: InvokeModelParams, *, idempotency_key: str | None = None
    ) -> ModelAnswer:
        """Refuse."""
        raise _no_models()

    async def stream(
        self, endpoint: ModelEndpoint, params: InvokeModelParams, *, idempotency_key: str | None = None
    ) -> AsyncGenerator[ModelStreamEvent, None]:
        """Refuse."""
        raise _no_models()
        yield ModelStreamEvent()

    async def rerank(
        self, endpoint: ModelEndpoint, params: RerankParams, *, idempotency_key: str | None = None
    ) -> RerankResult:
        """Refuse."""
        raise _no_models()

    async def count_tokens(self, endpoint: ModelEndpoint, params: CountTokensParams) -> TokenCount:
        """Refuse."""
        raise _no_models()


def _no_models() -> NotConfigured:
    return NotConfigured("This host process was started without a model provider.")
