"""What a run was granted when it started, checked before a call is sent.

A convenience and no more: a clear error at the right line, without a round trip. The host checks every call
against what is left of the grants by then, and its refusal wins (S-2, D-15).
"""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from runhost.protocol import AgentRunContext
from runhost.sdk.api.errors import unauthorized

PullApi: TypeAlias = Literal[
    "prompt_get",
    "history_page",
    "history_search",
    "event_get",
    "event_page",
    "artifact_metadata",
    "artifact_read",
    "state",
    "storage",
    "steering_pull",
]
"""A field of `ContextAPICapabilities`."""


class _Granted(Protocol):
    def allows(self, operation: str) -> bool: ...


class Grants:
    """The grants in a run's context. Every check raises `AgentAPIException` with code `unauthorized`."""

    def __init__(self, ctx: AgentRunContext) -> None:
        self._resources = ctx.resources
        self._apis = ctx.context.available_apis

    def check_model(self, field: str, model_id: str, *operations: str) -> None:
        """Ask for a model with one of the operations; `field` is the parameter that names it."""
        found = [model for model in self._resources.models if model.model_id == model_id]
        _check(found, f"{field}: this run may not {_either(operations)} model {model_id!r}", "models", operations)

    def check_tool(self, tool_name: str, operation: str) -> None:
        """Ask for a tool with an operation."""
        found = [tool for tool in self._resources.tools if tool.tool_name == tool_name]
        _check(found, f"tool_name: this run may not {operation} tool {tool_name!r}", "tools", (operation,))

    def check_knowledge_base(self, kb_id: str, operation: str) -> None:
        """Ask for a knowledge base with an operation."""
        found = [base for base in self._resources.knowledge_bases if base.kb_id == kb_id]
        message = f"kb_id: this run may not {operation} from knowledge base {kb_id!r}"
        _check(found, message, "knowledge_bases", (operation,))

    def check_file(self, file_key: str) -> None:
        """Ask for a file of the config, or a document of a granted base (D-13)."""
        found = [file for file in self._resources.files if file.file_id == file_key]
        _check(found, f"file_key: this run may not read file {file_key!r}", "files", ("config", "knowledge"))

    def check_api(self, flag: PullApi) -> None:
        """Ask for a pull API."""
        if not getattr(self._apis, flag):
            raise unauthorized(f"This run may not use {flag}; ctx.context.available_apis lists what it may.")

    def check_storage(self, area: Literal["plugin", "workspace"]) -> None:
        """Ask for a storage area."""
        storage = self._resources.storage
        is_open = storage.plugin_storage if area == "plugin" else storage.workspace_storage
        if not (self._apis.storage and is_open):
            raise unauthorized(f"This run may not use {area} storage; ctx.resources.storage says what it may.")

    def callable_tools(self) -> list[str]:
        """Return the names of the tools that may be both looked at and called."""
        return [tool.tool_name for tool in self._resources.tools if tool.allows("detail") and tool.allows("call")]


def _check(found: Sequence[_Granted], message: str, resources: str, operations: tuple[str, ...]) -> None:
    if not any(resource.allows(operation) for resource in found for operation in operations):
        raise unauthorized(f"{message}; ctx.resources.{resources} lists what it may.")


def _either(operations: Sequence[str]) -> str:
    return " or ".join(operations)
