"""A runner that notes when it is started and when it is told to stop."""

import asyncio
from collections.abc import AsyncIterator

from runhost.protocol import AgentRunContext, AgentRunResult
from runhost.sdk import AgentRunner, results
from tests.benchmarks.notes import note


class ClockRunner(AgentRunner):
    """Says one message; with ``hold`` in its config it waits instead until it is cancelled."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        note("started", ctx.run_id)
        if self.config_of(ctx).get("hold"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                note("told", ctx.run_id)
                yield results.cancelled(ctx)
                return
        yield results.message(ctx, "Hello")
        yield results.completed(ctx)
