"""What a process calls for the runs that it serves: models and tools."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from providers.mcp import McpToolProvider, StdioPolicy
from providers.models import ModelProvider
from providers.openai import OpenAIProvider
from providers.tools import ToolProvider


@dataclass(frozen=True)
class Providers:
    """Open providers."""

    models: ModelProvider
    tools: ToolProvider


@asynccontextmanager
async def open_providers(stdio_commands: Sequence[str]) -> AsyncIterator[Providers]:
    """Open providers; leaving the block ends their connections and the tool servers that they started.

    Args:
        stdio_commands: Beginnings of the command lines that may be started as tool servers.
    """
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(OpenAIProvider())
        tools = await stack.enter_async_context(McpToolProvider(StdioPolicy.parse(stdio_commands)))
        yield Providers(models, tools)
