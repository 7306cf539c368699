"""Tool servers that answer what a test says."""

from dataclasses import dataclass, field
from typing import Any

from providers.tools import NoTools, ToolServerAddress
from runhost.protocol import JsonObject
from runhost.protocol.host_api import ToolDetail, ToolResult

SEARCH = ToolDetail(
    tool_name="search",
    human_desc="Searches",
    description="Finds pages.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}},
)


@dataclass
class FakeTools(NoTools):
    """Every server offers a search, unless ``offers`` says otherwise for its workspace and id.

    A tool answers with its arguments. ``asked`` is filled with the addresses.
    """

    offers: dict[tuple[str, str], list[ToolDetail] | Exception] = field(default_factory=dict)
    asked: list[ToolServerAddress] = field(default_factory=list)

    async def list_tools(self, address: ToolServerAddress) -> list[ToolDetail]:
        self.asked.append(address)
        offered = self.offers.get((address.workspace_id, address.server_id), [SEARCH])
        if isinstance(offered, Exception):
            raise offered
        return offered

    async def call(
        self, address: ToolServerAddress, remote_name: str, parameters: JsonObject, *_: Any, **__: Any
    ) -> ToolResult:
        return ToolResult(result=parameters)
