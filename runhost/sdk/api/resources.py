"""Tools, knowledge bases and files: what is granted by name (PROTOCOL 9.2, 9.3, 9.8)."""

from runhost.protocol import JsonObject
from runhost.protocol.host_api import (
    FileContent,
    KnowledgeBaseInfo,
    KnowledgeBaseList,
    RetrievalEntry,
    RetrievalResult,
    ToolDetail,
    ToolFunction,
    ToolResult,
)
from runhost.sdk.api.calls import ProxyPart
from runhost.sdk.api.encoding import content_of


class ResourceCalls(ProxyPart):
    """Calls of tools, knowledge bases and files; see `AgentRunAPIProxy`."""

    async def get_tool_detail(self, tool_name: str) -> ToolDetail:
        """Read what a tool is and takes. Needs the tool with operation `detail`."""
        self._grants.check_tool(tool_name, "detail")
        return await self._calls.call("get_tool_detail", ToolDetail, tool_name=tool_name)

    async def call_tool(self, tool_name: str, parameters: JsonObject) -> ToolResult:
        """Call a tool. Needs the tool with operation `call`.

        Returns:
            What it returned; a tool that reports an error of its own answers too, with `is_error`.
        """
        self._grants.check_tool(tool_name, "call")
        return await self._calls.call("call_tool", ToolResult, tool_name=tool_name, parameters=parameters)

    async def tool_functions(self) -> list[ToolFunction]:
        """Return the run's tools as functions for a model: those with operations `detail` and `call`."""
        details = [await self.get_tool_detail(name) for name in self._grants.callable_tools()]
        return [
            ToolFunction(name=detail.tool_name, description=detail.description, parameters=detail.parameters)
            for detail in details
        ]

    async def list_knowledge_bases(self) -> list[KnowledgeBaseInfo]:
        """Return the knowledge bases that were granted with operation `list` (D-13)."""
        return (await self._calls.call("list_knowledge_bases", KnowledgeBaseList)).items

    async def retrieve_knowledge(
        self, kb_id: str, query_text: str, top_k: int = 5, filters: JsonObject | None = None
    ) -> list[RetrievalEntry]:
        """Find passages, best first. Needs the base with operation `retrieve`.

        Args:
            kb_id: The base, of `ctx.resources.knowledge_bases`.
            query_text: What is asked.
            top_k: Passages at most, up to 100.
            filters: Equalities on the metadata of documents.
        """
        self._grants.check_knowledge_base(kb_id, "retrieve")
        answer = await self._calls.call(
            "retrieve_knowledge", RetrievalResult, kb_id=kb_id, query_text=query_text, top_k=top_k, filters=filters
        )
        return answer.items

    async def get_file(self, file_key: str) -> FileContent:
        """Read a file with what is known of it; `content_of` has its bytes. Needs the file in `ctx.resources`."""
        self._grants.check_file(file_key)
        return await self._calls.call("get_file", FileContent, file_key=file_key)

    async def read_file(self, file_key: str) -> bytes:
        """Read the bytes of a file."""
        return content_of(await self.get_file(file_key))
