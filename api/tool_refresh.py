"""Asking a tool server what it offers (D-19)."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from api.problems import Problem
from providers.errors import ProviderError
from providers.tools import ToolProvider, ToolServerAddress
from runhost.protocol import ErrorCode
from runhost.protocol.host_api import MAX_FUNCTIONS, ToolDetail
from stores.jsonb import encoded_size
from stores.tool_servers import ToolRow, ToolServerRow, ToolServerStore

# Below the 30 s that clients wait for an answer; a program that is fetched first takes a while to start.
REFRESH_TIMEOUT_SECONDS: Final = 25.0
MAX_DEFINITION_BYTES: Final = 256 * 1024

_log = structlog.get_logger(__name__)


class ToolRefresh:
    """Asks tool servers for their tools and keeps what they say.

    Args:
        engine: The database.
        provider: Talks to the servers.
        timeout_seconds: How long a server may take.
    """

    def __init__(
        self, engine: AsyncEngine, provider: ToolProvider, *, timeout_seconds: float = REFRESH_TIMEOUT_SECONDS
    ) -> None:
        self._engine = engine
        self._provider = provider
        self._timeout_seconds = timeout_seconds

    async def refresh(self, workspace_id: str, server_id: str) -> list[ToolRow]:
        """Ask one server and return its tools; those that it no longer offers are taken back from open runs.

        No transaction is open while it is asked. Repeating this is harmless.

        Raises:
            ToolServerNotFound: There is none in this workspace.
            ToolServerChanged: It was changed meanwhile.
            Problem: 502, it did not tell its tools; what it told last stays.
        """
        async with self._engine.connect() as connection:
            server = await ToolServerStore(connection, workspace_id).get(server_id)
        try:
            tools = await self._ask(workspace_id, server)
        except ProviderError as error:
            _log.warning("tool_server.refresh.failed", server_id=server_id, error=type(error).__name__)
            async with self._engine.begin() as connection:
                await ToolServerStore(connection, workspace_id).mark_stale(server_id, error.message)
            raise Problem(
                502,
                ErrorCode.RUNTIME_ERROR,
                f"Tool server {server_id!r} did not tell its tools; those that it told last stay. {error.message}",
                retryable=error.retryable,
            ) from error
        async with self._engine.begin() as connection:
            return await ToolServerStore(connection, workspace_id).replace_tools(
                server_id, tools, asked_in=server.updated_at
            )

    async def _ask(self, workspace_id: str, server: ToolServerRow) -> Sequence[ToolDetail]:
        address = ToolServerAddress(
            server_id=server.server_id,
            transport=server.transport,
            command=server.command,
            env=server.env,
            url=server.url,
            headers=server.headers,
            workspace_id=workspace_id,
        )
        try:
            async with asyncio.timeout(self._timeout_seconds):
                tools = await self._provider.list_tools(address)
        except TimeoutError:
            raise ProviderError(f"It took longer than {self._timeout_seconds:g} s.", retryable=True) from None
        if len(tools) > MAX_FUNCTIONS:
            raise ProviderError(f"It offers {len(tools)} tools; at most {MAX_FUNCTIONS} can be kept.")
        for tool in tools:
            size = encoded_size(tool.model_dump(mode="json"))
            if size > MAX_DEFINITION_BYTES:
                raise ProviderError(
                    f"Its tool {tool.tool_name!r} has a definition of {size} bytes; at most {MAX_DEFINITION_BYTES} fit."
                )
        return tools
