"""Models: calls, streams, scores and token counts (PROTOCOL 9.1)."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from runhost.protocol import JsonObject, Message, MessageChunk
from runhost.protocol.host_api import ModelAnswer, ModelStreamEvent, RerankResult, RerankScore, TokenCount, ToolFunction
from runhost.sdk.api.calls import ProxyPart


class ModelCalls(ProxyPart):
    """Calls of models; see `AgentRunAPIProxy`."""

    async def invoke_llm(
        self,
        llm_model_uuid: str,
        messages: Sequence[Message],
        funcs: Sequence[ToolFunction] | None = None,
        extra_args: JsonObject | None = None,
    ) -> Message:
        """Ask a model for one message, text or tool calls. Needs the model with operation `invoke`.

        Args:
            llm_model_uuid: The model, a `model_id` of `ctx.resources.models`.
            messages: The whole prompt.
            funcs: Functions that the model may ask for; `tool_functions` makes them of the run's tools.
            extra_args: Further arguments of the provider, such as `temperature`.
        """
        self._grants.check_model("llm_model_uuid", llm_model_uuid, "invoke")
        params = _prompt(llm_model_uuid, messages, funcs, extra_args)
        return (await self._calls.call("invoke_llm", ModelAnswer, **params)).message

    async def invoke_llm_with_usage(
        self,
        llm_model_uuid: str,
        messages: Sequence[Message],
        funcs: Sequence[ToolFunction] | None = None,
        extra_args: JsonObject | None = None,
    ) -> ModelAnswer:
        """As `invoke_llm`, with the tokens that it took: `message`, and `usage`, None where they are unknown."""
        self._grants.check_model("llm_model_uuid", llm_model_uuid, "invoke")
        params = _prompt(llm_model_uuid, messages, funcs, extra_args)
        return await self._calls.call("invoke_llm_with_usage", ModelAnswer, **params)

    async def invoke_llm_stream(
        self,
        llm_model_uuid: str,
        messages: Sequence[Message],
        funcs: Sequence[ToolFunction] | None = None,
        extra_args: JsonObject | None = None,
    ) -> AsyncGenerator[MessageChunk]:
        """As `invoke_llm`, piece by piece. Needs the model with operation `stream`.

        Closing the generator ends the model's work; `contextlib.aclosing` does so for a loop that may be left.
        """
        self._grants.check_model("llm_model_uuid", llm_model_uuid, "stream")
        params = _prompt(llm_model_uuid, messages, funcs, extra_args)
        async with aclosing(self._calls.stream("invoke_llm_stream", ModelStreamEvent, **params)) as events:
            async for event in events:
                if event.chunk is not None:
                    yield event.chunk

    async def invoke_llm_stream_events(
        self,
        llm_model_uuid: str,
        messages: Sequence[Message],
        funcs: Sequence[ToolFunction] | None = None,
        extra_args: JsonObject | None = None,
    ) -> AsyncGenerator[ModelStreamEvent]:
        """As `invoke_llm_stream`, with usage: each event has a `chunk`, a `usage` or both."""
        self._grants.check_model("llm_model_uuid", llm_model_uuid, "stream")
        params = _prompt(llm_model_uuid, messages, funcs, extra_args)
        async with aclosing(self._calls.stream("invoke_llm_stream_events", ModelStreamEvent, **params)) as events:
            async for event in events:
                yield event

    async def invoke_rerank(
        self, rerank_model_id: str, query: str, documents: Sequence[str], top_k: int | None = None
    ) -> list[RerankScore]:
        """Score documents by how well they answer a query. Needs the model with operation `rerank`.

        Returns:
            At most `top_k` scores, best first; `index` is the document's place in `documents`, from 0.
        """
        self._grants.check_model("rerank_model_id", rerank_model_id, "rerank")
        answer = await self._calls.call(
            "invoke_rerank",
            RerankResult,
            rerank_model_id=rerank_model_id,
            query=query,
            documents=list(documents),
            top_k=top_k,
        )
        return answer.scores

    async def count_tokens(
        self, llm_model_uuid: str, messages: Sequence[Message], funcs: Sequence[ToolFunction] | None = None
    ) -> TokenCount:
        """Count the tokens of a prompt without calling the model. Needs it with operation `invoke` or `stream`.

        Returns:
            `tokens`, and whether they are `exact` or estimated from the length.
        """
        self._grants.check_model("llm_model_uuid", llm_model_uuid, "invoke", "stream")
        return await self._calls.call(
            "count_tokens",
            TokenCount,
            llm_model_uuid=llm_model_uuid,
            messages=list(messages),
            funcs=None if funcs is None else list(funcs),
        )


def _prompt(
    llm_model_uuid: str,
    messages: Sequence[Message],
    funcs: Sequence[ToolFunction] | None,
    extra_args: JsonObject | None,
) -> dict[str, object]:
    return {
        "llm_model_uuid": llm_model_uuid,
        "messages": list(messages),
        "funcs": None if funcs is None else list(funcs),
        "extra_args": extra_args,
    }
