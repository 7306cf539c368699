"""An assistant that uses what the host has for a runner: history, knowledge, tools, models, state, artifacts."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from pydantic import TypeAdapter, ValidationError

from runhost.protocol import (
    AgentRunContext,
    AgentRunResult,
    ContentElement,
    JsonObject,
    JsonValue,
    Message,
    MessageChunk,
    RunFailureCode,
    ToolCall,
)
from runhost.sdk import AgentAPIException, AgentRunAPIProxy, AgentRunner, ToolFunction, results

MAX_ROUNDS = 8
"""Model calls of one run at most: a model that only ever asks for tools must come to an end."""

MAX_CHARACTERS = 200_000
"""Longest answer, and most that is read of what a tool returned: a result has at most 2 MiB of JSON."""

MAX_QUERY_CHARACTERS = 10_000
"""Most that a knowledge base can be asked."""

PASSAGES_PER_BASE = 3
MAX_PASSAGES = 12


class GivenUp(Exception):
    """The run cannot go on; `code` is for programs, the text for people."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Assistant(AgentRunner):
    """Answers a message, in as many rounds as its model asks for tools."""

    async def run(self, ctx: AgentRunContext) -> AsyncGenerator[AgentRunResult]:
        """Answer, or say why not."""
        try:
            async with aclosing(self._answer(ctx, self.get_run_api(ctx))) as answering:
                async for result in answering:
                    yield result
        except GivenUp as reason:
            yield results.failed(ctx, reason.code, str(reason))
        except AgentAPIException as failure:
            error = failure.error
            yield results.failed(ctx, f"assistant.{error.code}", error.message, retryable=error.retryable)

    async def _answer(self, ctx: AgentRunContext, api: AgentRunAPIProxy) -> AsyncGenerator[AgentRunResult]:
        """Gather what the model should know, then let it talk and call tools until it is done."""
        config, question, models = self.config_of(ctx), question_of(ctx), models_of(ctx)
        messages = prompt_of(config)
        sources = await find_sources(api, ctx)
        if sources:
            messages.append(Message(role="system", content="Sources:\n\n" + "\n\n".join(sources)))
            content = json.dumps(sources).encode()
            yield results.artifact(ctx, "file", content, name="sources.json", mime_type="application/json")
        messages += await recent_messages(api, ctx, count_of(config.get("history_items")))
        messages.append(Message(role="user", content=question))

        functions = await api.tool_functions()
        for index in range(MAX_ROUNDS):
            answer = Answer()
            async with aclosing(ask(api, models, messages, functions, answer)) as pieces:
                async for piece in pieces:
                    if ctx.delivery.supports_streaming:
                        yield results.delta(ctx, piece, message_index=index)
            if not answer.calls:
                await count_turn(api)
                yield results.completed(ctx, answer.finish_reason, message=answer.message())
                return
            yield results.message(ctx, answer.message())
            messages.append(answer.message())
            for call in answer.calls.values():
                name, arguments = call.function.name, arguments_of(call)
                if arguments is None or all(function.name != name for function in functions):
                    said = "There is no such tool, or its arguments are no JSON object."
                else:
                    yield results.tool_started(ctx, call.id, name, arguments)
                    result, failure = await call_tool(api, name, arguments)
                    yield results.tool_completed(ctx, call.id, name, result=result, error=failure)
                    said = failure if result is None else json.dumps(result, ensure_ascii=False)
                messages.append(Message(role="tool", content=said, tool_call_id=call.id))
        raise GivenUp("assistant.rounds", f"the model asked for tools {MAX_ROUNDS} times in a row")


class Answer:
    """One answer of a model, put together from its pieces."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[str, ToolCall] = {}
        self.finish_reason = "stop"

    def add(self, chunk: MessageChunk) -> str:
        """Add a piece; returns the text in it."""
        text = chunk.content if isinstance(chunk.content, str) else ""
        self.text += text
        self.finish_reason = chunk.finish_reason or self.finish_reason
        for call in chunk.tool_calls or []:
            self._add_call(call)
        if len(self.text) + sum(len(call.function.arguments) for call in self.calls.values()) > MAX_CHARACTERS:
            raise GivenUp("assistant.too_long", f"the answer has more than {MAX_CHARACTERS} characters")
        return text

    def _add_call(self, piece: ToolCall) -> None:
        """Add a call, or a piece of the arguments of one that has begun."""
        begun = self.calls.get(piece.id)
        if begun is not None:
            arguments = begun.function.arguments + piece.function.arguments
            piece = begun.model_copy(update={"function": begun.function.model_copy(update={"arguments": arguments})})
        self.calls[piece.id] = piece

    def message(self) -> Message:
        """Return it as a message."""
        return Message(role="assistant", content=self.text, tool_calls=list(self.calls.values()) or None)


async def ask(
    api: AgentRunAPIProxy,
    models: list[str],
    messages: list[Message],
    functions: list[ToolFunction],
    answer: Answer,
) -> AsyncGenerator[str]:
    """Let the first of the models that can answer, and yield its text as it comes; those that cannot are dropped.

    Raises:
        AgentAPIException: No model answered, one broke off in the middle, or the time is over.
        GivenUp: The answer is nothing, or too much.
    """
    while True:
        try:
            # Closed wherever this is left: the model then stops working.
            async with aclosing(api.invoke_llm_stream_events(models[0], messages, functions or None)) as events:
                async for event in events:
                    if event.chunk is not None and (text := answer.add(event.chunk)):
                        yield text
        except AgentAPIException as failure:
            # What a reader has seen is not said again by another model.
            if answer.text or len(models) == 1 or failure.error.code == "deadline_exceeded":
                raise
            answer.calls.clear()
            del models[0]
        else:
            break
    if not answer.calls and not answer.text.strip():
        raise GivenUp(RunFailureCode.RUNNER_NO_OUTPUT, "the model answered nothing")


def models_of(ctx: AgentRunContext) -> list[str]:
    """Return the models to ask, the agent's first choice first."""
    if not ctx.resources.models:
        raise GivenUp("assistant.config", "model: none is granted; select one in the agent's config")
    return [model.model_id for model in ctx.resources.models]


def prompt_of(config: JsonObject) -> list[Message]:
    """Return what the agent's config says before everything else."""
    try:
        return TypeAdapter(list[Message]).validate_python(config.get("prompt") or [])
    except ValidationError:
        raise GivenUp("assistant.config", "prompt: must be a list of messages with role and content") from None


def question_of(ctx: AgentRunContext) -> list[ContentElement]:
    """Return what was said, images and files included."""
    contents = list(ctx.input.contents)
    if ctx.input.text and all(part.type != "text" for part in contents):
        contents.insert(0, ContentElement(type="text", text=ctx.input.text))
    if all(part.type == "text" and not (part.text or "").strip() for part in contents):
        raise GivenUp("assistant.no_question", "the event carries nothing to answer")
    return contents


async def find_sources(api: AgentRunAPIProxy, ctx: AgentRunContext) -> list[str]:
    """Return passages of the agent's knowledge bases that fit what was said."""
    found: list[str] = []
    query = (ctx.input.text or "")[:MAX_QUERY_CHARACTERS]
    for base in ctx.resources.knowledge_bases if query else []:
        try:
            entries = await api.retrieve_knowledge(base.kb_id, query, top_k=PASSAGES_PER_BASE)
        except AgentAPIException:
            # An answer without this base is better than none.
            continue
        found += [part.text for entry in entries for part in entry.content]
    return found[:MAX_PASSAGES]


async def recent_messages(api: AgentRunAPIProxy, ctx: AgentRunContext, limit: int) -> list[Message]:
    """Return what was said before this event, oldest first."""
    if not ctx.context.available_apis.history_page or not ctx.context.has_history_before or limit < 1:
        return []
    page = await api.history_page(limit=limit + 1)
    # The newest item is what this run answers.
    before = [item for item in page.items if item.event_id != ctx.event.event_id][:limit]
    return [
        Message(role=item.role, content=item.content)
        for item in reversed(before)
        if item.role in {"user", "assistant"} and item.content
    ]


async def call_tool(api: AgentRunAPIProxy, name: str, arguments: JsonObject) -> tuple[JsonObject | None, str | None]:
    """Call a tool; a failure is something that the model should know, not the end of the run."""
    try:
        answer = await api.call_tool(name, arguments)
    except AgentAPIException as failure:
        return None, failure.error.message
    text = json.dumps(answer.result)
    result: JsonValue = answer.result if len(text) <= MAX_CHARACTERS else {"beginning": text[:MAX_CHARACTERS]}
    failed = "the tool reports an error" if answer.is_error else None
    return result if isinstance(result, dict) else {"value": result}, failed


async def count_turn(api: AgentRunAPIProxy) -> None:
    """Count what was answered in this conversation, where the agent's policy has state for it."""
    try:
        turns = count_of(await api.state_get("conversation", "turns"))
        await api.state_set("conversation", "turns", turns + 1)
    except AgentAPIException:
        # The answer stands without it.
        return


def arguments_of(call: ToolCall) -> JsonObject | None:
    """Read what a model wrote as arguments, which may be anything; None for what is no object."""
    try:
        return TypeAdapter(JsonObject).validate_python(json.loads(call.function.arguments or "{}"))
    except (ValueError, RecursionError):
        return None


def count_of(value: JsonValue) -> int:
    """Return a value that should be a whole number; 0 where there is none."""
    return value if isinstance(value, int) else 0
