"""Calls of models against the stub."""

from typing import Any

from providers.models import ModelEndpoint
from runhost.protocol.host_api import CountTokensParams, InvokeModelParams, RerankParams
from tests.fixtures.openai_stub import MODEL, Behaviour, OpenAIStub, Reply, StubRequest

KEY = "sk-secret-of-the-tests"


def endpoint_of(stub: OpenAIStub, **changes: Any) -> ModelEndpoint:
    known: dict[str, Any] = {"base_url": stub.base_url, "model_name": MODEL, "api_key": KEY, "timeout_seconds": 10}
    return ModelEndpoint(**known | changes)


def prompt(*messages: Any, **fields: Any) -> InvokeModelParams:
    """Return a call; plain text is a message of the user."""
    sent = [{"role": "user", "content": message} if isinstance(message, str) else message for message in messages]
    return InvokeModelParams.model_validate({"llm_model_uuid": "m1", "messages": sent or _HELLO, **fields})


def counted(*messages: Any, **fields: Any) -> CountTokensParams:
    known = prompt(*messages, **fields).model_dump(exclude={"extra_args"})
    return CountTokensParams.model_validate(known)


def ranking(*documents: str, **fields: Any) -> RerankParams:
    return RerankParams.model_validate({"rerank_model_id": "r1", "query": "q", "documents": list(documents), **fields})


def answers(status: int, body: object, headers: dict[str, str] | None = None) -> Behaviour:
    """Have the stub answer everything like this."""

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.send_json(status, body, headers)

    return behave


def streams(*events: object, ending: str | None = "[DONE]") -> Behaviour:
    """Have the stub stream these events."""

    async def behave(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        for event in events:
            await reply.send_event(event)
        if ending is not None:
            await reply.send_event(ending)
        await reply.end_chunks()

    return behave


_HELLO = [{"role": "user", "content": "hello"}]
