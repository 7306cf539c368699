"""What the author of a runner needs: a base class, functions that build results, and the way to the host.

A runner is a class with one asynchronous generator, and a manifest `runner.yaml` beside it::

    from collections.abc import AsyncIterator

    from runhost.protocol import AgentRunContext, AgentRunResult
    from runhost.sdk import AgentRunner, results


    class Echo(AgentRunner):
        async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
            yield results.message(ctx, ctx.input.text or "")
            yield results.completed(ctx)

Inside `run`, `self.get_run_api(ctx)` reaches the host: models, tools, history, state and the rest of what the
run was granted. `runhost.sdk.http.HttpConnection` carries the same calls over HTTP.
"""

from runhost.protocol import AgentAPIError, AgentAPIException
from runhost.protocol.host_api import HistoryFilters, ToolFunction
from runhost.sdk import results
from runhost.sdk.api.encoding import content_of
from runhost.sdk.connection import HostConnection, connected, current_connection
from runhost.sdk.proxy import AgentRunAPIProxy
from runhost.sdk.runner import AgentRunner

__all__ = [
    "AgentAPIError",
    "AgentAPIException",
    "AgentRunAPIProxy",
    "AgentRunner",
    "HistoryFilters",
    "HostConnection",
    "ToolFunction",
    "connected",
    "content_of",
    "current_connection",
    "results",
]
