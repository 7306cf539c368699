"""`ToolProvider` over MCP servers."""

import asyncio
from types import TracebackType
from typing import Final, Self

from mcp import MCPError

from providers.errors import ProviderError
from providers.mcp.failures import is_connection_gone, is_session_gone, translate
from providers.mcp.policy import StdioPolicy
from providers.mcp.results import check_parameters
from providers.mcp.session import ToolSession
from providers.own_tasks import in_own_task
from providers.tools import ToolServerAddress
from runhost.protocol import JsonObject
from runhost.protocol.host_api import ToolDetail, ToolResult

OPEN_SECONDS: Final = 30.0
CALL_SECONDS: Final = 600.0
IDLE_SECONDS: Final = 300.0
MAX_SESSIONS: Final = 200


class McpToolProvider:
    """Calls tools of MCP servers, over one session per server; enter it as a context.

    See `providers.tools.ToolProvider`. Sessions are opened by the first call, shared by all that follow at once or
    later, and closed when they are idle. On leaving, no server process is left.

    Args:
        policy: Which programs may be started as servers; none by default.
        open_seconds: How long a session may take to open.
        call_seconds: How long a call may take that says nothing about that itself.
        idle_seconds: How long a session stays open without a call.
        max_sessions: Most sessions at once; the one that is idle longest makes room.
    """

    def __init__(
        self,
        policy: StdioPolicy | None = None,
        *,
        open_seconds: float = OPEN_SECONDS,
        call_seconds: float = CALL_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        max_sessions: int = MAX_SESSIONS,
    ) -> None:
        self._policy = policy or StdioPolicy()
        self._open_seconds = open_seconds
        self._call_seconds = call_seconds
        self._idle_seconds = idle_seconds
        self._max_sessions = max_sessions
        # In the order of their last use.
        self._sessions: dict[str, ToolSession] = {}
        self._leaving: set[ToolSession] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self._is_closed = True
        sessions = {*self._sessions.values(), *self._leaving}
        self._sessions.clear()
        await asyncio.gather(*(session.close() for session in sessions))

    async def list_tools(self, address: ToolServerAddress) -> list[ToolDetail]:
        """Return all tools of a server, under the names that it gives them.

        Raises:
            ProviderError: It cannot be asked.
        """
        try:
            session = await self._session(address)
            try:
                return await session.list_tools()
            except MCPError as error:
                if not (is_session_gone(error) or is_connection_gone(error)):
                    raise
                session.discard()
            session = await self._session(address)
            return await session.list_tools()
        except MCPError as error:
            raise translate(error, address.server_id, address.secrets) from None

    async def call(
        self,
        address: ToolServerAddress,
        remote_name: str,
        parameters: JsonObject,
        meta: JsonObject | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> ToolResult:
        """Call a tool once; see `ToolProvider.call`.

        A session that the server has forgotten is opened anew, once. A call that may have reached its tool is never
        made again.

        Raises:
            ProviderError: There is no result; ``is_error`` of a result is the tool's own affair.
        """
        check_parameters(parameters)
        seconds = timeout_seconds or self._call_seconds
        try:
            session = await self._session(address)
            try:
                return await in_own_task(session.call(remote_name, parameters, meta, seconds))
            except MCPError as error:
                if is_connection_gone(error):
                    session.discard()
                if not is_session_gone(error):
                    raise
                session.discard()
            session = await self._session(address)
            return await in_own_task(session.call(remote_name, parameters, meta, seconds))
        except MCPError as error:
            raise translate(error, address.server_id, address.secrets) from None

    async def _session(self, address: ToolServerAddress) -> ToolSession:
        key = address.identity
        session = self._sessions.pop(key, None)
        if session is not None and not session.is_usable:
            self._leave(session)
            session = None
        if session is None:
            session = self._open(address)
        self._sessions[key] = session
        await session.opened()
        return session

    def _open(self, address: ToolServerAddress) -> ToolSession:
        if self._is_closed:
            raise ProviderError("The host is stopping.", retryable=True)
        for key, session in [*self._sessions.items()]:
            if not session.is_usable or (len(self._sessions) >= self._max_sessions and session.is_idle):
                self._leave(self._sessions.pop(key))
        if len(self._sessions) >= self._max_sessions:
            raise ProviderError(f"All {self._max_sessions} sessions with tool servers are busy.", retryable=True)
        return ToolSession(address, self._policy, open_seconds=self._open_seconds, idle_seconds=self._idle_seconds)

    def _leave(self, session: ToolSession) -> None:
        """Close a session in the background; a new one need not wait for it."""
        self._leaving.add(session)
        closing = asyncio.create_task(session.close())
        closing.add_done_callback(lambda _: self._leaving.discard(session))
