"""Tool servers, and the tools that they offer."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.paging import Page, PageQuery, Pager
from api.resource_models import ServerId, ToolRead, ToolRefreshRead, ToolServerRead, ToolServerRequest, ToolSummary
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import Identifier
from stores.tool_servers import ToolRow, ToolServerRow, ToolServerStore

router = APIRouter(route_class=AuthenticatedRoute, tags=["resources"])


class ToolQuery(PageQuery):
    """Which tools a page shows."""

    server_id: Annotated[Identifier | None, Field(description="Only tools of this server.")] = None


@router.put(
    "/v1/tool-servers/{server_id:id}",
    operation_id="putToolServer",
    response_model=ToolServerRead,
    responses=problems(409, body=True),
)
async def put_tool_server(
    server_id: ServerId, body: ToolServerRequest, caller: AgentWriter, host: Host
) -> JsonResponse:
    """Create or replace a tool server. Refresh it to learn its tools."""
    async with host.engine.begin() as connection:
        server = await ToolServerStore(connection, caller.workspace_id).put(body.row(server_id))
    return JsonResponse(_read_server(server))


@router.get(
    "/v1/tool-servers", operation_id="listToolServers", response_model=Page[ToolServerRead], responses=problems(400)
)
async def list_tool_servers(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the tool servers, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("tool servers", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await ToolServerStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read_server, position_of=lambda server: server.server_id))


@router.get(
    "/v1/tool-servers/{server_id:id}",
    operation_id="getToolServer",
    response_model=ToolServerRead,
    responses=problems(404),
)
async def get_tool_server(server_id: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read a tool server."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read_server(await ToolServerStore(connection, caller.workspace_id).get(server_id)))


@router.delete(
    "/v1/tool-servers/{server_id:id}", operation_id="deleteToolServer", status_code=204, responses=problems(404)
)
async def delete_tool_server(server_id: Identifier, caller: AgentWriter, host: Host) -> Response:
    """Delete a tool server with its secrets and tools, and take these back from open runs."""
    async with host.engine.begin() as connection:
        await ToolServerStore(connection, caller.workspace_id).delete(server_id)
    return Response(status_code=204)


@router.post(
    "/v1/tool-servers/{server_id:id}/refresh",
    operation_id="refreshToolServer",
    response_model=ToolRefreshRead,
    responses=problems(404, 409, 502),
)
async def refresh_tool_server(server_id: Identifier, caller: AgentWriter, host: Host) -> JsonResponse:
    """Ask a tool server for its tools. If it does not answer, those that it told last stay.

    A tool that is no longer offered is taken back from open runs. To repeat this is harmless.
    """
    tools = await host.tool_refresh.refresh(caller.workspace_id, server_id)
    return JsonResponse({"items": [_summary(tool) for tool in tools]})


@router.get("/v1/tools", operation_id="listTools", response_model=Page[ToolSummary], responses=problems(400))
async def list_tools(query: Annotated[ToolQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the tools, in order of their names."""
    pager = Pager(host.cursors, query.list_name("tools", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await ToolServerStore(connection, caller.workspace_id).list_tools(
            server_id=query.server_id, after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_summary, position_of=lambda tool: tool.tool_name))


@router.get("/v1/tools/{tool_name:id}", operation_id="getTool", response_model=ToolRead, responses=problems(404))
async def get_tool(tool_name: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read a tool with the schema of its arguments."""
    async with host.reads.connect() as connection:
        tool = await ToolServerStore(connection, caller.workspace_id).get_tool(tool_name)
    return JsonResponse(_summary(tool) | {"parameters": tool.parameters})


def _read_server(server: ToolServerRow) -> Document:
    # Field by field: what is added to a row later is told on purpose, or not at all.
    return {
        "server_id": server.server_id,
        "transport": server.transport,
        "command": server.command,
        "env_names": sorted(server.env),
        "url": server.url,
        "header_names": sorted(server.headers),
        "enabled": server.enabled,
        "is_stale": server.is_stale,
        "last_error": server.last_error,
        "refreshed_at": server.refreshed_at,
        "created_at": server.created_at,
        "updated_at": server.updated_at,
    }


def _summary(tool: ToolRow) -> Document:
    return {
        "tool_name": tool.tool_name,
        "server_id": tool.server_id,
        "remote_name": tool.remote_name,
        "description": tool.description,
        "human_desc": tool.human_desc,
        "enabled": tool.enabled,
    }
