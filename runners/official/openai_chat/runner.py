"""Runner `plugin:runhost/openai-chat/default`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from runhost.protocol import AgentInput, AgentRunContext, AgentRunResult, RunFailureCode, Usage
from runhost.sdk import AgentRunner, results
from runners.official.openai_chat.answer import Answer
from runners.official.openai_chat.config import PromptMessage, read_config, read_key
from runners.official.openai_chat.endpoint import ChatRequest
from runners.official.openai_chat.failures import ChatFailure

UNKNOWN_FINISH_REASON = "unknown"

logger = structlog.get_logger(__name__)


class OpenAIChatRunner(AgentRunner):
    """Answers an event with one call of an OpenAI-compatible chat endpoint.

    Yields `message.delta` for each piece of text as it arrives, then `message.completed` with the whole text
    and `run.completed` with finish reason and usage; or one `run.failed`, with the usage if the endpoint told
    it. What it sends is the prompt of the config and the text of the event: no history, no files.
    """

    async def run(self, ctx: AgentRunContext) -> AsyncGenerator[AgentRunResult]:
        """Run once; see the class. A cancelled run ends with code `cancelled` (P-T4)."""
        try:
            config = read_config(self.config_of(ctx))
            key = read_key(config.api_key_env)
            messages = conversation(config.prompt, ctx.input)
        except ChatFailure as failure:
            yield _failed(ctx, failure)
            return
        answer = Answer(key)
        request = ChatRequest(config, key, messages, ctx.runtime.deadline_at)
        try:
            async with aclosing(request.stream(answer)) as texts:
                async for text in texts:
                    yield results.delta(ctx, text)
            text = whole_text(answer)
        except ChatFailure as failure:
            yield _failed(ctx, failure, answer.usage)
            return
        except asyncio.CancelledError:
            # The request is closed by now. Whoever cancelled must still see that it worked: hence the raise.
            yield results.failed(ctx, RunFailureCode.CANCELLED, "the run was cancelled", usage=answer.usage)
            raise
        if answer.skipped:
            logger.warning("runner.openai_chat.chunks_skipped", run_id=ctx.run_id, count=answer.skipped)
        yield results.message(ctx, text)
        yield results.completed(ctx, answer.finish_reason or UNKNOWN_FINISH_REASON, usage=answer.usage)


def conversation(prompt: list[PromptMessage], agent_input: AgentInput) -> list[dict[str, str]]:
    """Put the prompt's messages before the text of the event.

    Raises:
        ChatFailure: the event carries no text.
    """
    parts = [element.text for element in agent_input.contents if element.type == "text" and element.text]
    text = "\n".join(parts) or agent_input.text or ""
    if not text.strip():
        raise ChatFailure(RunFailureCode.RUNNER_ERROR, "the event carries no text, and this runner reads nothing else")
    messages = [message.model_dump() for message in prompt]
    return [*messages, {"role": "user", "content": text}]


def whole_text(answer: Answer) -> str:
    """Return the text of a finished answer.

    Raises:
        ChatFailure: there is none (D-24).
    """
    if not answer.text.strip():
        reason = answer.finish_reason or UNKNOWN_FINISH_REASON
        error = f"the model answered without any text (finish reason {reason!r})"
        raise ChatFailure(RunFailureCode.RUNNER_NO_OUTPUT, error)
    return answer.text


def _failed(ctx: AgentRunContext, failure: ChatFailure, usage: Usage | None = None) -> AgentRunResult:
    return results.failed(ctx, failure.code, failure.error, retryable=failure.retryable, usage=usage)
