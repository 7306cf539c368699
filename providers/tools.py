"""What the host asks of a tool server, however it is reached (PROTOCOL 9.2)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import Literal, Protocol, TypeAlias

from providers.errors import NotConfigured
from runhost.protocol import JsonObject
from runhost.protocol.host_api import ToolDetail, ToolResult

ToolTransport: TypeAlias = Literal["stdio", "streamable_http"]


@dataclass(frozen=True, slots=True)
class ToolServerAddress:
    """A tool server and how it is reached.

    Attributes:
        server_id: Its name in messages and logs.
        transport: A program that speaks on its standard streams, or HTTP.
        command: The program and its arguments, for `stdio`.
        env: What the program finds in its environment besides a few harmless variables. Secrets.
        url: Address, for `streamable_http`.
        headers: Headers of every request. Secrets.
        workspace_id: Whose it is: sessions are never shared between workspaces.
    """

    server_id: str
    transport: ToolTransport
    command: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict, repr=False)
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    workspace_id: str = ""

    @property
    def identity(self) -> str:
        """The same for equal addresses, and telling nothing of their secrets."""
        return hashlib.sha256(json.dumps(astuple(self), sort_keys=True).encode()).hexdigest()

    @property
    def secrets(self) -> list[str]:
        """What no message may quote."""
        values = [*self.env.values(), *self.headers.values()]
        # A bearer token is as much a secret without the word before it.
        return [part for value in values for part in (value, *value.split())]


class ToolProvider(Protocol):
    """Calls tools. Each method raises `ProviderError`; cancelling one tells the server so."""

    async def list_tools(self, address: ToolServerAddress) -> list[ToolDetail]:
        """Return all tools of a server, under the names that it gives them."""
        ...

    async def call(
        self,
        address: ToolServerAddress,
        remote_name: str,
        parameters: JsonObject,
        meta: JsonObject | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> ToolResult:
        """Call a tool once.

        Args:
            address: The server.
            remote_name: What the server calls the tool.
            parameters: Its arguments.
            meta: Facts about the call for the server, beside the arguments.
            timeout_seconds: How long to wait; None leaves it to the provider.
        """
        ...


class NoTools:
    """Stands where a process calls no tools; every call raises `NotConfigured`."""

    async def list_tools(self, address: ToolServerAddress) -> list[ToolDetail]:
        """Refuse."""
        raise _no_tools()

    async def call(
        self,
        address: ToolServerAddress,
        remote_name: str,
        parameters: JsonObject,
        meta: JsonObject | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> ToolResult:
        """Refuse."""
        raise _no_tools()


def _no_tools() -> NotConfigured:
    return NotConfigured("This host process was started without a tool provider.")
