"""Calls for what agents can be granted: models, tool servers, tools, skills, files."""

from collections.abc import Mapping

from pydantic import BaseModel

from runhost.client.exchange import Exchange, segment
from runhost.client.models import Page
from runhost.client.resource_models import (
    FileRead,
    ModelRead,
    ModelRequest,
    SkillRead,
    SkillRequest,
    SkillSummary,
    ToolList,
    ToolRead,
    ToolServerRead,
    ToolServerRequest,
    ToolSummary,
)
from runhost.protocol import JsonObject


class ResourceCalls:
    """The part of `RunhostClient` that keeps registries. Ids are of the caller's choice."""

    _exchange: Exchange

    async def put_model(self, model_id: str, model: ModelRequest) -> ModelRead:
        """Create or replace a model. A field that was never set is not sent, so that the host keeps its key."""
        return await self._exchange.call(ModelRead, "PUT", _path("models", model_id), body=_as_set(model))

    async def get_model(self, model_id: str) -> ModelRead:
        """Read a model."""
        return await self._exchange.call(ModelRead, "GET", _path("models", model_id))

    async def list_models(self, *, limit: int = 50, cursor: str | None = None) -> Page[ModelRead]:
        """Read a page of the models, in order of their ids; at most 200."""
        return await self._exchange.call(Page[ModelRead], "GET", "/v1/models", query=_paging(limit, cursor))

    async def delete_model(self, model_id: str) -> None:
        """Delete a model and take it back from open runs."""
        await self._exchange.send("DELETE", _path("models", model_id))

    async def put_tool_server(self, server_id: str, server: ToolServerRequest) -> ToolServerRead:
        """Create or replace a tool server; see `put_model` for its secrets, `refresh_tool_server` for its tools."""
        return await self._exchange.call(ToolServerRead, "PUT", _path("tool-servers", server_id), body=_as_set(server))

    async def get_tool_server(self, server_id: str) -> ToolServerRead:
        """Read a tool server."""
        return await self._exchange.call(ToolServerRead, "GET", _path("tool-servers", server_id))

    async def list_tool_servers(self, *, limit: int = 50, cursor: str | None = None) -> Page[ToolServerRead]:
        """Read a page of the tool servers, in order of their ids; at most 200."""
        return await self._exchange.call(Page[ToolServerRead], "GET", "/v1/tool-servers", query=_paging(limit, cursor))

    async def delete_tool_server(self, server_id: str) -> None:
        """Delete a tool server with its tools, and take these back from open runs."""
        await self._exchange.send("DELETE", _path("tool-servers", server_id))

    async def refresh_tool_server(self, server_id: str) -> ToolList:
        """Let the host ask a tool server for its tools.

        Raises:
            ApiProblem: `runtime_error` with status 502, the server did not tell them; and others.
        """
        return await self._exchange.call(ToolList, "POST", f"{_path('tool-servers', server_id)}/refresh")

    async def list_tools(
        self, *, server_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[ToolSummary]:
        """Read a page of the tools, of one server or of all, in order of their names; at most 200."""
        query = _paging(limit, cursor, {} if server_id is None else {"server_id": server_id})
        return await self._exchange.call(Page[ToolSummary], "GET", "/v1/tools", query=query)

    async def get_tool(self, tool_name: str) -> ToolRead:
        """Read a tool."""
        return await self._exchange.call(ToolRead, "GET", _path("tools", tool_name))

    async def put_skill(self, skill_name: str, skill: SkillRequest) -> SkillRead:
        """Create or replace a skill."""
        return await self._exchange.call(SkillRead, "PUT", _path("skills", skill_name), body=_as_set(skill))

    async def get_skill(self, skill_name: str) -> SkillRead:
        """Read a skill."""
        return await self._exchange.call(SkillRead, "GET", _path("skills", skill_name))

    async def list_skills(self, *, limit: int = 50, cursor: str | None = None) -> Page[SkillSummary]:
        """Read a page of the skills, in order of their names; at most 200."""
        return await self._exchange.call(Page[SkillSummary], "GET", "/v1/skills", query=_paging(limit, cursor))

    async def delete_skill(self, skill_name: str) -> None:
        """Delete a skill and take it back from open runs."""
        await self._exchange.send("DELETE", _path("skills", skill_name))

    async def put_file(
        self, file_key: str, content: bytes, *, file_name: str | None = None, mime_type: str | None = None
    ) -> FileRead:
        """Create or replace a file of at most 10 MiB."""
        return await self._exchange.call(
            FileRead,
            "PUT",
            _path("files", file_key),
            query={} if file_name is None else {"file_name": file_name},
            content=content,
            content_type=mime_type,
        )

    async def get_file(self, file_key: str) -> FileRead:
        """Read what is known of a file."""
        return await self._exchange.call(FileRead, "GET", _path("files", file_key))

    async def read_file(self, file_key: str) -> bytes:
        """Read the bytes of a file."""
        return (await self._exchange.send("GET", f"{_path('files', file_key)}/content")).content

    async def list_files(self, *, limit: int = 50, cursor: str | None = None) -> Page[FileRead]:
        """Read a page of what is known of files, in order of their keys; at most 200."""
        return await self._exchange.call(Page[FileRead], "GET", "/v1/files", query=_paging(limit, cursor))

    async def delete_file(self, file_key: str) -> None:
        """Delete a file and take it back from open runs."""
        await self._exchange.send("DELETE", _path("files", file_key))


def _path(collection: str, identifier: str) -> str:
    return f"/v1/{collection}/{segment(identifier)}"


def _as_set(request: BaseModel) -> JsonObject:
    return request.model_dump(mode="json", exclude_unset=True)


def _paging(limit: int, cursor: str | None, filters: Mapping[str, str] | None = None) -> dict[str, str]:
    cursors = {} if cursor is None else {"cursor": cursor}
    return {"limit": str(limit), **cursors, **(filters or {})}
