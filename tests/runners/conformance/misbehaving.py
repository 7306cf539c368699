"""A runner that keeps to the protocol, and for every case of the kit one that breaks just that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from threading import Event
from typing import Any, ClassVar

from runhost.protocol import AgentAPIError, AgentAPIException, AgentRunContext, AgentRunResult, JsonObject, Usage
from runhost.sdk import AgentRunner, current_connection, results

FAR_FUTURE_SECONDS = 3_600.0
LEFT_BEHIND_SECONDS = 2.0


def prompt(text: str) -> JsonObject:
    return {"llm_model_uuid": "conformance-model", "messages": [{"role": "user", "content": text[:100]}]}


class Good(AgentRunner):
    """Asks the model that it was granted, streams the answer in two pieces, and completes it."""

    breaks: ClassVar[str] = ""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        try:
            if not self.text_of(ctx).strip():
                for result in self.silent(ctx):
                    yield result
                return
            answer = await self.ask(ctx)
        except AgentAPIException as error:
            yield results.failed(ctx, error.error.code, error.error.message)
        except asyncio.CancelledError:
            yield results.cancelled(ctx)
        else:
            async for result in self.answer(ctx, *answer):
                yield result

    def text_of(self, ctx: AgentRunContext) -> str:
        return ctx.input.text or ""

    def silent(self, ctx: AgentRunContext) -> list[AgentRunResult]:
        return [results.failed(ctx, "good.no_text", "there is no text")]

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        answer: Any = await current_connection().call("invoke_llm", prompt(self.text_of(ctx)))
        usage = answer["usage"]
        return answer["message"]["content"][:1_000], None if usage is None else Usage.model_validate(usage)

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        middle = len(text) // 2
        yield results.delta(ctx, text[:middle])
        yield results.delta(ctx, text[middle:])
        yield results.message(ctx, text)
        yield results.completed(ctx, usage=usage)


class Numbering(Good):
    """Numbers its results, as it says itself."""

    numbers: ClassVar[tuple[int | None, ...]] = (1, 2, 3, 4)

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        numbers = iter(self.numbers)
        async for result in super().answer(ctx, text, usage):
            yield result.model_copy(update={"sequence": next(numbers)})


class FailsAlways(Good):
    breaks = "answer"

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        await super().ask(ctx)
        raise AgentAPIException(AgentAPIError(code="moody", message="not today"))


class TripsOverSurrogates(Good):
    breaks = "hostile_text"

    def text_of(self, ctx: AgentRunContext) -> str:
        return (ctx.input.text or "").encode().decode()


class ReadsStrictly(Good):
    breaks = "newer_context"

    def text_of(self, ctx: AgentRunContext) -> str:
        return AgentRunContext.model_validate(ctx.model_dump(), extra="forbid").input.text or ""


class KnowsMessagesOnly(Good):
    breaks = "unknown_event"

    def text_of(self, ctx: AgentRunContext) -> str:
        return {"message.received": ctx.input.text or ""}[ctx.event.event_type]


class TrustsItsConfig(Good):
    breaks = "crash"

    def text_of(self, ctx: AgentRunContext) -> str:
        greeting = ctx.config["greeting"]
        assert isinstance(greeting, str)
        return ctx.input.text or ""


class BlankSuccess(Good):
    breaks = "silence"

    def silent(self, ctx: AgentRunContext) -> list[AgentRunResult]:
        return [results.completed(ctx)]


class SharesItsText(Good):
    """Keeps the text of the latest run in the instance."""

    breaks = "together"
    latest = ""

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        self.latest = self.text_of(ctx)
        await asyncio.sleep(0.05)
        _, usage = await super().ask(ctx)
        return self.latest[:100], usage


class ForgetsItsEnd(Good):
    breaks = "order"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        yield results.message(ctx, text, usage=usage)


class TalksAfterItsEnd(Good):
    breaks = "late_result"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        async for result in super().answer(ctx, text, usage):
            yield result
        yield results.delta(ctx, "and another thing")


class RepeatsNumbers(Numbering):
    breaks = "duplicate_sequence"
    numbers = (1, 2, 2, 3)


class LeavesNumbersOut(Numbering):
    breaks = "missing_sequence"
    numbers = (1, 2, 4, 5)


class MixesRunIds(Good):
    breaks = "run_id"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        async for result in super().answer(ctx, text, usage):
            yield result.model_copy(update={"run_id": "another-run"})


class InventsFields(Good):
    breaks = "envelope"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        async for result in super().answer(ctx, text, usage):
            yield {"colour": "red", **result.model_dump()}


class EmptyPayload(Good):
    breaks = "payload"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        yield {"run_id": ctx.run_id, "type": "message.delta", "data": {"text": text}}
        async for result in super().answer(ctx, text, usage):
            yield result


class InventsTypes(Good):
    breaks = "unknown_type"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        yield {"run_id": ctx.run_id, "type": "Almost Done!", "data": {}}
        async for result in super().answer(ctx, text, usage):
            yield result


class RepeatsLongInput(Good):
    breaks = "long_output"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        yield results.message(ctx, self.text_of(ctx))
        yield results.completed(ctx, usage=usage)


class SendsSnapshots(Good):
    breaks = "streaming"

    async def answer(self, ctx: AgentRunContext, text: str, usage: Usage | None) -> AsyncIterator[Any]:
        yield results.delta(ctx, text[: len(text) // 2])
        yield results.delta(ctx, text)
        yield results.message(ctx, text)
        yield results.completed(ctx, usage=usage)


class CountsZeros(Good):
    breaks = "usage"

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        text, usage = await super().ask(ctx)
        return text, usage or Usage(prompt_tokens=0, completion_tokens=0)


class AsksForMore(Good):
    """Tries a model that it was not granted, and takes no for an answer."""

    breaks = "host_calls"

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        try:
            await current_connection().call("invoke_llm", prompt("hello") | {"llm_model_uuid": "somebody-elses-model"})
        except AgentAPIException:
            return await super().ask(ctx)
        raise AssertionError("granted")


class TriesForEver(Good):
    breaks = "refused_calls"

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        while True:
            try:
                return await super().ask(ctx)
            except AgentAPIException:
                await asyncio.sleep(0.001)


class DeafToCancel(Good):
    breaks = "cancel"

    def is_deaf(self, ctx: AgentRunContext, error: BaseException) -> bool:
        return isinstance(error, asyncio.CancelledError) and ctx.runtime.deadline_at is None

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        try:
            return await super().ask(ctx)
        except (asyncio.CancelledError, AgentAPIException) as error:
            while self.is_deaf(ctx, error):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(FAR_FUTURE_SECONDS)
            raise


class DeafAtDeadline(DeafToCancel):
    breaks = "deadline"

    def is_deaf(self, ctx: AgentRunContext, error: BaseException) -> bool:
        return ctx.runtime.deadline_at is not None


class LeavesAThread(Good):
    breaks = "leftovers"
    released = Event()

    async def ask(self, ctx: AgentRunContext) -> tuple[str, Usage | None]:
        if ctx.event.event_id.startswith("conformance-plain"):
            asyncio.get_running_loop().run_in_executor(None, self.released.wait, LEFT_BEHIND_SECONDS)
        return await super().ask(ctx)


BAD_RUNNERS: dict[str, type[Good]] = {
    runner.breaks: runner
    for runner in (
        FailsAlways,
        TripsOverSurrogates,
        ReadsStrictly,
        KnowsMessagesOnly,
        TrustsItsConfig,
        BlankSuccess,
        SharesItsText,
        ForgetsItsEnd,
        TalksAfterItsEnd,
        RepeatsNumbers,
        LeavesNumbersOut,
        MixesRunIds,
        InventsFields,
        EmptyPayload,
        InventsTypes,
        RepeatsLongInput,
        SendsSnapshots,
        CountsZeros,
        AsksForMore,
        TriesForEver,
        DeafToCancel,
        DeafAtDeadline,
        LeavesAThread,
    )
}
"""By the one case that each of them breaks."""
