"""Runners that are run both in the worker and in a process of their own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from runhost.protocol import AgentAPIException, AgentRunContext, AgentRunResult, JsonObject
from runhost.sdk import AgentRunner, results
from runhost.sdk.connection import current_connection


class Talker(AgentRunner):
    """Yields one of everything that differs on a wire."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        print("this is no result")  # noqa: T201
        yield results.delta(ctx, "grüße 你好 \ud800\u2028")
        yield results.message(ctx, ctx.input.text or "")
        yield results.state(ctx, "actor", "k", {"a": [1, None, 0.5]})
        yield results.artifact(ctx, "file", b"\x00\x01", name="a.bin")
        yield results.completed(ctx, message="bye")


class Caller(AgentRunner):
    """Calls the host, several at a time, and a stream."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        host = current_connection()
        answers = await asyncio.gather(*(host.call("state_get", {"key": f"k{n}"}) for n in range(10)))
        yield results.message(ctx, " ".join(str(answer["key"]) for answer in answers))
        async with aclosing(host.stream("invoke_llm_stream", {})) as events:
            yield results.message(ctx, str([event async for event in events]))
        try:
            await host.call("refuse", {})
        except AgentAPIException as error:
            yield results.message(ctx, f"{error.error.code} {error.error.details}")
        yield results.completed(ctx)


class Waiter(AgentRunner):
    """Waits for an answer until it is cancelled; calls once more then."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.delta(ctx, "ready")
        try:
            await current_connection().call("wait", {})
        except asyncio.CancelledError as cancelled:
            answer = await current_connection().call("state_set", {"value": cancelled.args[0]})
            yield results.cancelled(ctx, str(answer["value"]))


class Sleeper(AgentRunner):
    """Lets a cancel pass."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.delta(ctx, "ready")
        await asyncio.sleep(600)


class Flood(AgentRunner):
    """Yields without a pause until it is cancelled at its `yield`."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        try:
            while True:
                yield results.delta(ctx, "x" * 1_000)
        except asyncio.CancelledError:
            yield results.cancelled(ctx)


class GivesUp(AgentRunner):
    """Gives a call up, and a stream before its end."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        host = current_connection()
        try:
            async with asyncio.timeout(0.05):
                await host.call("wait", {})
        except TimeoutError:
            yield results.delta(ctx, "gave up")
        async with aclosing(host.stream("invoke_llm_stream", {"wait": True})) as events:
            yield results.delta(ctx, str(await anext(events)))
        await host.call("state_get", {})
        yield results.completed(ctx)


class Crasher(AgentRunner):
    """Raises after a result."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.delta(ctx, "before")
        raise ValueError("no such thing")


class Exiter(AgentRunner):
    """Ends the program, and says that all is well."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.delta(ctx, "before")
        sys.exit(0)


class Odd(AgentRunner):
    """Yields what is no result, and results without and with numbers."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield 42
        yield object()
        yield results.delta(ctx, "one")
        yield {"run_id": ctx.run_id, "type": "a.b", "data": {"when": object()}}
        yield {"run_id": ctx.run_id, "type": "a.b", "data": {}}
        yield results.delta(ctx, "three").model_copy(update={"sequence": 7})
        yield results.delta(ctx, "four")


class Configured(AgentRunner):
    """Shows its configuration, and that nobody's input is its input."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        config: JsonObject = self.config_of(ctx)
        yield results.message(ctx, str(config))
        yield results.completed(ctx)


class NoGenerator(AgentRunner):
    """Returns something else than a generator."""

    async def run(self, ctx: AgentRunContext) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return []
