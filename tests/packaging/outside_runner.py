"""A runner in a process of its own: reads its context as JSON, reaches the host over HTTP, prints its results.

Runs where nothing is installed but the wheel, so it imports nothing else.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

from runhost.protocol import AgentRunContext, AgentRunResult
from runhost.sdk import AgentAPIException, AgentRunner, connected, results
from runhost.sdk.http import HttpConnection


class Outside(AgentRunner):
    """Uses a call of every kind that needs no model and no tool."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        api = self.get_run_api(ctx)
        said = [item.content async for item in api.iter_history(direction="forward")]
        yield results.message(ctx, f"{len(said)} said, first {said[0]!r}, host {await api.get_langbot_version()}")

        await api.state_set("conversation", "seen", {"texts": [*said], "odd": "\0你"})
        seen = await api.state_get("conversation", "seen")
        keys = await api.state_list("conversation", prefix="se")
        yield results.state(ctx, "runner", "seen again", {"value": seen, "keys": [*keys.keys]})

        content = bytes(range(256)) * 4096
        await api.set_plugin_storage("blob", content)
        kept = await api.get_plugin_storage("blob")
        yield results.artifact(ctx, "file", str(kept == content).encode(), name="kept.txt")

        try:
            await api.get_tool_detail("never granted")
        except AgentAPIException as refusal:
            yield results.completed(ctx, refusal.error.code)


async def main(api_url: str, token: str, plugin_identity: str) -> None:
    ctx = AgentRunContext.model_validate_json(await asyncio.to_thread(sys.stdin.read))
    async with HttpConnection(api_url, token, ctx.run_id, plugin_identity) as connection:
        with connected(connection):
            async for result in Outside().run(ctx):
                sys.stdout.write(result.model_dump_json() + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
