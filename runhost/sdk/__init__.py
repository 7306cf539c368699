"""What the author of a runner needs: a base class and functions that build results.

A runner is a class with one asynchronous generator, and a manifest `runner.yaml` beside it::

    from collections.abc import AsyncIterator

    from runhost.protocol import AgentRunContext, AgentRunResult
    from runhost.sdk import AgentRunner, results


    class Echo(AgentRunner):
        async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
            yield results.message(ctx, ctx.input.text or "")
            yield results.completed(ctx)
"""

from runhost.sdk import results
from runhost.sdk.runner import AgentRunner

__all__ = ["AgentRunner", "results"]
