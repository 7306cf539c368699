"""One open session with a tool server, kept for many calls.

The `mcp` package is built on task groups, which must be entered and left by one task: each session has a task of its
own for that. Requests come from whichever task makes the call.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import structlog
from mcp import Client, ClientSession, MCPError
from mcp_types import (
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
)
from pydantic import TypeAdapter, ValidationError

from providers.errors import ProviderError, ProviderTimeout, quote
from providers.mcp.failures import is_connection_gone, translate
from providers.mcp.http import http_server
from providers.mcp.policy import StdioPolicy, environment
from providers.mcp.results import read_result, read_tool
from providers.mcp.stdio import ServerProcess, stdio_server
from providers.tools import ToolServerAddress
from runhost import __version__
from runhost.protocol import JsonObject
from runhost.protocol.host_api import ToolDetail, ToolResult

LIST_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 15.0
MAX_TOOLS: Final = 10_000
MAX_PAGES: Final = 1_000

_RESULT: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(CallToolResult | InputRequiredResult)

_log = structlog.get_logger(__name__)


@dataclass
class _Connection:
    """What a session works with; over HTTP there is no process."""

    client: Client
    process: ServerProcess | None = None

    @property
    def is_gone(self) -> bool:
        """Whether nothing can be asked any more."""
        return self.process is not None and self.process.is_gone


class ToolSession:
    """A session with one server, opened when it is started and closed when it is idle, broken or told so.

    Args:
        address: The server.
        policy: Which programs may be started.
        open_seconds: How long it may take to open.
        idle_seconds: How long it stays open without a call.
    """

    def __init__(
        self, address: ToolServerAddress, policy: StdioPolicy, *, open_seconds: float, idle_seconds: float
    ) -> None:
        self._address = address
        self._policy = policy
        self._open_seconds = open_seconds
        self._idle_seconds = idle_seconds
        self._connection: _Connection | None = None
        self._closing = asyncio.Event()
        self._calls = 0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # Whoever waited may have given up; the failure is told to whoever has not.
        self._opened.add_done_callback(lambda opened: opened.cancelled() or opened.exception())
        self._owner = asyncio.create_task(self._own())
        self._log = _log.bind(server_id=address.server_id, transport=address.transport)

    @property
    def is_usable(self) -> bool:
        """Whether a call may still begin."""
        if self._closing.is_set() or self._owner.done():
            return False
        return self._connection is None or not self._connection.is_gone

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return self._calls == 0 and self._opened.done()

    async def opened(self) -> None:
        """Wait until it is open.

        Raises:
            ProviderError: It cannot be opened.
        """
        await asyncio.shield(self._opened)

    def discard(self) -> None:
        """Have it closed soon; calls under way are answered as broken off."""
        self._closing.set()

    async def close(self) -> None:
        """Close it; its server process, if it has one, is gone on return."""
        self.discard()
        # One that is not open yet has nobody to say goodbye to.
        seconds = CLOSE_SECONDS if self._opened.done() else 0
        _, late = await asyncio.wait({self._owner}, timeout=seconds)
        if late:
            self._owner.cancel()
            await asyncio.wait(late)

    async def list_tools(self) -> list[ToolDetail]:
        """Return all tools of the server, page by page; those that no run could name are left out.

        Raises:
            MCPError: The server reports an error, or is lost.
            ProviderError: It does not say it in time, or says too much.
        """
        with self._call() as session:
            try:
                async with asyncio.timeout(LIST_SECONDS):
                    return await self._all_tools(session)
            except TimeoutError:
                raise ProviderTimeout(f"{self._who} did not list its tools within {LIST_SECONDS:g} s.") from None
            except ValidationError:
                raise ProviderError(f"{self._who} listed what are no tools.") from None

    async def call(
        self, remote_name: str, parameters: JsonObject, meta: JsonObject | None, timeout_seconds: float
    ) -> ToolResult:
        """Call a tool once.

        Raises:
            MCPError: The server reports an error, is lost, or does not answer in time and was told to stop.
            ProviderError: Its answer is none, or asks for what a run cannot give.
        """
        arguments: dict[str, Any] = {"name": remote_name, "arguments": parameters}
        request = CallToolRequest(params=CallToolRequestParams(**arguments, _meta=dict(meta) if meta else None))  # type: ignore[arg-type]
        with self._call() as session:
            try:
                result = await self._send(session, request, timeout_seconds)
            except ValidationError:
                raise ProviderError(f"{self._who} answered what is no result of a tool.") from None
        if isinstance(result, InputRequiredResult):
            raise ProviderError(f"{self._who} asks for input during the call, which a run cannot give.")
        return read_result(result)

    async def _send(
        self, session: ClientSession, request: CallToolRequest, timeout_seconds: float
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await session.send_request(request, _RESULT, request_read_timeout_seconds=timeout_seconds)
        except MCPError as error:
            if error.error.code != HEADER_MISMATCH:
                raise
        # The server reads some arguments from headers, and the session learns which ones from the list.
        await self._all_tools(session)
        return await session.send_request(request, _RESULT, request_read_timeout_seconds=timeout_seconds)

    async def _all_tools(self, session: ClientSession) -> list[ToolDetail]:
        tools: list[ToolDetail] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            tools += [detail for tool in page.tools if (detail := read_tool(tool)) is not None]
            if len(tools) > MAX_TOOLS:
                break
            if page.next_cursor is None or page.next_cursor == cursor:
                return tools
            cursor = page.next_cursor
        raise ProviderError(f"{self._who} lists more than {MAX_TOOLS} tools, or {MAX_PAGES} pages of them.")

    @property
    def _who(self) -> str:
        return f"Tool server {self._address.server_id!r}"

    def _call(self) -> "_Call":
        return _Call(self, self._opened.result().session)

    def begin(self) -> None:
        """Count a call in."""
        self._calls += 1
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def end(self) -> None:
        """Count a call out; after the last one the session closes unless another comes."""
        self._calls -= 1
        if self._calls == 0:
            self._wait_for_calls()

    def _wait_for_calls(self) -> None:
        self._idle_timer = asyncio.get_running_loop().call_later(self._idle_seconds, self.discard)

    async def _own(self) -> None:
        """Open the session, keep it, close it: all in this task."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._open_seconds):
                    connection = await stack.enter_async_context(_connected(self._address, self._policy))
                self._connection = connection
                self._opened.set_result(connection.client)
                self._log.info("tool_server.session.opened")
                if self._calls == 0:
                    self._wait_for_calls()
                await self._until_over(connection)
            self._log.info("tool_server.session.closed")
        except Exception as error:  # noqa: BLE001 - handed to who waits; later there is nobody, only a lost session
            if self._opened.done():
                self._log.warning("tool_server.session.lost", error=type(error).__name__)
            else:
                self._opened.set_exception(self._explain(error))
        finally:
            if self._idle_timer is not None:
                self._idle_timer.cancel()
            if not self._opened.done():
                self._opened.set_exception(ProviderError("The host is stopping.", retryable=True))

    async def _until_over(self, connection: _Connection) -> None:
        ends = [self._closing, *([connection.process.ended] if connection.process else ())]
        waits = [asyncio.create_task(end.wait()) for end in ends]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _explain(self, error: Exception) -> ProviderError:
        """Say why a session did not open."""
        error = _first(error)
        if isinstance(error, ProviderError):
            return error
        if isinstance(error, MCPError):
            return translate(error, self._address.server_id, self._address.secrets)
        if isinstance(error, TimeoutError):
            return ProviderTimeout(f"{self._who} was not ready within {self._open_seconds:g} s.")
        self._log.warning("tool_server.session.failed", error=type(error).__name__)
        return ProviderError(f"{self._who} does not speak the protocol ({type(error).__name__}).")


class _Call:
    """Counts a call for as long as it lasts."""

    def __init__(self, session: ToolSession, client: ClientSession) -> None:
        self._session = session
        self._client = client

    def __enter__(self) -> ClientSession:
        self._session.begin()
        return self._client

    def __exit__(self, *_: object) -> None:
        self._session.end()


@asynccontextmanager
async def _connected(address: ToolServerAddress, policy: StdioPolicy) -> AsyncGenerator[_Connection, None]:
    if address.transport == "streamable_http":
        async with http_server(address.url or "", address.headers) as streams, _client(streams) as client:
            yield _Connection(client)
        return
    process, is_ready = None, False
    try:
        command, env = policy.resolve(address.command), environment(address.env)
        async with stdio_server(command, env) as (process, *streams), _client(tuple(streams)) as client:
            is_ready = True
            yield _Connection(client, process)
    except (MCPError, ExceptionGroup) as error:
        cause = _first(error)
        if is_ready or process is None or not isinstance(cause, MCPError) or not is_connection_gone(cause):
            raise
        said = quote(process.last_words, address.secrets)
        ending = f"; it says: {said}" if said else ""
        raise ProviderError(f"Tool server {address.server_id!r} ended before it was ready{ending}") from None


def _first(error: Exception) -> Exception:
    """Return what was raised first; the rest of a group is what it did to the tasks beside it."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _client(streams: Any) -> Client:
    return Client(
        nullcontext(streams),
        # A list of tools is asked for when it is needed anew.
        cache=None,
        client_info=Implementation(name="runhost", version=__version__),
    )
