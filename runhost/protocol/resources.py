"""What a run may use: the authorization result as the runner sees it (PROTOCOL 6)."""

from typing import ClassVar

from pydantic import Field

from runhost.protocol.identifiers import Identifier
from runhost.protocol.json import JsonObject, LenientModel


class _Resource(LenientModel):
    """A granted resource with the operations that are granted on it."""

    ALL_OPERATIONS: ClassVar[frozenset[str]] = frozenset()

    operations: list[str] = Field(default_factory=list)

    def allows(self, operation: str) -> bool:
        """Tell whether an operation is granted; an empty list grants all of the kind (PROTOCOL 6)."""
        return operation in (self.operations or self.ALL_OPERATIONS)


class ModelResource(_Resource):
    """A model; operations `invoke`, `stream`, `rerank`."""

    ALL_OPERATIONS = frozenset({"invoke", "stream", "rerank"})

    model_id: Identifier
    model_type: str | None = None
    provider: str | None = None


class ToolResource(_Resource):
    """A tool; operations `detail`, `call`."""

    ALL_OPERATIONS = frozenset({"detail", "call"})

    tool_name: Identifier
    tool_type: str | None = None
    description: str | None = None


class KnowledgeBaseResource(_Resource):
    """A knowledge base; operations `list`, `retrieve`."""

    ALL_OPERATIONS = frozenset({"list", "retrieve"})

    kb_id: Identifier
    kb_name: str | None = None
    kb_type: str | None = None


class SkillResource(LenientModel):
    """Facts about a skill; the only operation, `activate`, is implied."""

    skill_name: Identifier
    display_name: str | None = None
    description: str | None = None


class FileResource(_Resource):
    """A file; operations `config`, `knowledge`."""

    ALL_OPERATIONS = frozenset({"config", "knowledge"})

    file_id: Identifier
    file_name: str | None = None
    mime_type: str | None = None
    source: str | None = None


class StorageResource(LenientModel):
    """Which storage areas are open."""

    plugin_storage: bool = False
    workspace_storage: bool = False


class AgentResources(LenientModel):
    """Everything granted to this run; ids are opaque.

    History, events and artifacts are not listed here: `ContextAccess.available_apis` speaks for them.
    """

    models: list[ModelResource] = Field(default_factory=list)
    tools: list[ToolResource] = Field(default_factory=list)
    knowledge_bases: list[KnowledgeBaseResource] = Field(default_factory=list)
    skills: list[SkillResource] = Field(default_factory=list)
    files: list[FileResource] = Field(default_factory=list)
    storage: StorageResource = Field(default_factory=StorageResource)
    platform_capabilities: JsonObject = Field(default_factory=dict)
