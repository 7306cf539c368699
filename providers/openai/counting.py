"""Counts tokens: by the endpoint where it offers that, as vLLM and llama.cpp do, else by estimate."""

import time
from typing import Any, Final

from providers.errors import ProviderError
from providers.models import ModelEndpoint
from providers.openai.answers import parse_object
from providers.openai.requests import chat_messages, chat_tools
from providers.openai.tokens import estimate_tokens
from providers.openai.transport import EndpointTransport, RefusedRequest, secrets_of
from runhost.protocol.host_api import CountTokensParams, TokenCount

COUNT_SECONDS: Final = 5.0
FORGET_AFTER_SECONDS: Final = 600.0
"""How long an endpoint is not asked again after it has refused; it may be another program by then."""

MAX_REMEMBERED: Final = 1_000
# Answers about the route; any other is about this one prompt.
_NO_ROUTE: Final = frozenset({401, 403, 404, 405, 410, 501})


class TokenCounter:
    """Counts, and remembers which endpoints cannot."""

    def __init__(self, transport: EndpointTransport) -> None:
        self._transport = transport
        self._refused_until: dict[str, float] = {}

    async def count(self, endpoint: ModelEndpoint, params: CountTokensParams) -> TokenCount:
        """Return the tokens of a prompt; an endpoint that fails to count them does not fail the call."""
        if params.messages and _is_text(params) and not self._has_refused(endpoint):
            try:
                tokens = await self._ask(endpoint, params)
            except RefusedRequest as error:
                if error.status in _NO_ROUTE:
                    self._remember_refusal(endpoint)
            except ProviderError:
                pass  # it may count the next time
            else:
                if tokens is not None:
                    return TokenCount(tokens=tokens, exact=True)
                self._remember_refusal(endpoint)
        return TokenCount(tokens=estimate_tokens(params), exact=False)

    async def _ask(self, endpoint: ModelEndpoint, params: CountTokensParams) -> int | None:
        """Ask as vLLM is asked, then as llama.cpp is; None where the answer is neither's."""
        body: dict[str, Any] = {"model": endpoint.model_name, "messages": chat_messages(params.messages)}
        if params.funcs:
            body["tools"] = chat_tools(params.funcs)
        answer = await self._post(endpoint, "tokenize", {**body, "add_generation_prompt": True})
        if isinstance(count := answer.get("count"), int):
            return count
        if not isinstance(answer.get("tokens"), list):
            return None
        # llama.cpp counts text only, and puts messages into its template on request.
        prompt = (await self._post(endpoint, "apply-template", body)).get("prompt")
        if not isinstance(prompt, str):
            return None
        text = {"content": prompt, "add_special": True, "parse_special": True}
        tokens = (await self._post(endpoint, "tokenize", text)).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    async def _post(self, endpoint: ModelEndpoint, path: str, body: dict[str, Any]) -> dict[str, Any]:
        root = endpoint.base_url.rstrip("/").removesuffix("/v1")
        seconds = min(COUNT_SECONDS, endpoint.timeout_seconds)
        answer = await self._transport.post(endpoint, f"{root}/{path}", body, timeout_seconds=seconds)
        return parse_object(answer, secrets_of(endpoint))

    def _has_refused(self, endpoint: ModelEndpoint) -> bool:
        return self._refused_until.get(endpoint.base_url, 0.0) > time.monotonic()

    def _remember_refusal(self, endpoint: ModelEndpoint) -> None:
        if len(self._refused_until) >= MAX_REMEMBERED:
            self._refused_until.clear()
        self._refused_until[endpoint.base_url] = time.monotonic() + FORGET_AFTER_SECONDS


def _is_text(params: CountTokensParams) -> bool:
    """Tell whether a prompt is text only: of a picture, these endpoints count the placeholder."""
    return not any(
        part.type != "text"
        for message in params.messages
        if isinstance(message.content, list)
        for part in message.content
    )
