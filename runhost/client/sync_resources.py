"""The blocking twin of the calls for what agents can be granted."""

from runhost.client.client import RunhostClient
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
from runhost.client.wires import run_blocking


class SyncResourceCalls:
    """The part of `SyncRunhostClient` that keeps registries; see `ResourceCalls`."""

    _client: RunhostClient

    def put_model(self, model_id: str, model: ModelRequest) -> ModelRead:
        """Create or replace a model. A field that was never set is not sent, so that the host keeps its key."""
        return run_blocking(self._client.put_model(model_id, model))

    def get_model(self, model_id: str) -> ModelRead:
        """Read a model."""
        return run_blocking(self._client.get_model(model_id))

    def list_models(self, *, limit: int = 50, cursor: str | None = None) -> Page[ModelRead]:
        """Read a page of the models, in order of their ids; at most 200."""
        return run_blocking(self._client.list_models(limit=limit, cursor=cursor))

    def delete_model(self, model_id: str) -> None:
        """Delete a model and take it back from open runs."""
        return run_blocking(self._client.delete_model(model_id))

    def put_tool_server(self, server_id: str, server: ToolServerRequest) -> ToolServerRead:
        """Create or replace a tool server; see `put_model` for its secrets, `refresh_tool_server` for its tools."""
        return run_blocking(self._client.put_tool_server(server_id, server))

    def get_tool_server(self, server_id: str) -> ToolServerRead:
        """Read a tool server."""
        return run_blocking(self._client.get_tool_server(server_id))

    def list_tool_servers(self, *, limit: int = 50, cursor: str | None = None) -> Page[ToolServerRead]:
        """Read a page of the tool servers, in order of their ids; at most 200."""
        return run_blocking(self._client.list_tool_servers(limit=limit, cursor=cursor))

    def delete_tool_server(self, server_id: str) -> None:
        """Delete a tool server with its tools, and take these back from open runs."""
        return run_blocking(self._client.delete_tool_server(server_id))

    def refresh_tool_server(self, server_id: str) -> ToolList:
        """Let the host ask a tool server for its tools."""
        return run_blocking(self._client.refresh_tool_server(server_id))

    def list_tools(
        self, *, server_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[ToolSummary]:
        """Read a page of the tools, of one server or of all, in order of their names; at most 200."""
        return run_blocking(self._client.list_tools(server_id=server_id, limit=limit, cursor=cursor))

    def get_tool(self, tool_name: str) -> ToolRead:
        """Read a tool."""
        return run_blocking(self._client.get_tool(tool_name))

    def put_skill(self, skill_name: str, skill: SkillRequest) -> SkillRead:
        """Create or replace a skill."""
        return run_blocking(self._client.put_skill(skill_name, skill))

    def get_skill(self, skill_name: str) -> SkillRead:
        """Read a skill."""
        return run_blocking(self._client.get_skill(skill_name))

    def list_skills(self, *, limit: int = 50, cursor: str | None = None) -> Page[SkillSummary]:
        """Read a page of the skills, in order of their names; at most 200."""
        return run_blocking(self._client.list_skills(limit=limit, cursor=cursor))

    def delete_skill(self, skill_name: str) -> None:
        """Delete a skill and take it back from open runs."""
        return run_blocking(self._client.delete_skill(skill_name))

    def put_file(
        self, file_key: str, content: bytes, *, file_name: str | None = None, mime_type: str | None = None
    ) -> FileRead:
        """Create or replace a file of at most 10 MiB."""
        return run_blocking(self._client.put_file(file_key, content, file_name=file_name, mime_type=mime_type))

    def get_file(self, file_key: str) -> FileRead:
        """Read what is known of a file."""
        return run_blocking(self._client.get_file(file_key))

    def read_file(self, file_key: str) -> bytes:
        """Read the bytes of a file."""
        return run_blocking(self._client.read_file(file_key))

    def list_files(self, *, limit: int = 50, cursor: str | None = None) -> Page[FileRead]:
        """Read a page of what is known of files, in order of their keys; at most 200."""
        return run_blocking(self._client.list_files(limit=limit, cursor=cursor))

    def delete_file(self, file_key: str) -> None:
        """Delete a file and take it back from open runs."""
        return run_blocking(self._client.delete_file(file_key))
