"""How the runs that a process serves reach out: the models and tools that it calls for them, and their limits."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from host_api.limits import CallLimits
from providers.mcp import McpToolProvider, StdioPolicy
from providers.models import ModelProvider
from providers.openai import OpenAIProvider
from providers.tools import ToolProvider

if TYPE_CHECKING:
    from runhost.settings import Settings


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


def call_limits(settings: "Settings") -> CallLimits:
    """Return what one run may ask of this process."""
    return CallLimits(
        calls_per_second=settings.host_calls_per_second,
        burst=settings.host_calls_burst,
        request_bytes=settings.host_request_bytes,
        response_bytes=settings.host_response_bytes,
    )
