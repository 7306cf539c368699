"""A run's authorization snapshot: frozen once, read by every check, and only ever smaller (D-15, HOST 8.2)."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field

from runhost.protocol import (
    AgentResources,
    ContextAPICapabilities,
    Identifier,
    LenientModel,
    StatePolicy,
)

ResourceKind: TypeAlias = Literal["model", "tool", "knowledge_base", "skill", "file"]
"""What can be granted by id."""

RevocationKind: TypeAlias = Literal["model", "tool", "knowledge_base", "skill", "file", "run"]
"""What can be taken back; `run` takes everything that the run may reach."""

ACTIVATE: Final = "activate"
"""The host's own tool, which answers the instructions of a skill."""

KNOWLEDGE_SOURCE: Final = "knowledge_base:"
"""With the id of a base behind it, the source of a file that is granted with the base (D-13)."""


class Revocation(LenientModel):
    """Something that was taken back from a run. ``id`` is None for the kind `run` alone."""

    kind: RevocationKind
    id: Identifier | None = None


class StateContext(LenientModel):
    """Whose state the run may use: a key for every scope that is enabled and has an identity (HOST 10)."""

    scope_keys: dict[str, str] = Field(default_factory=dict)
    binding_identity: str


class Authorization(LenientModel):
    """What one run may reach. Equal in every process, since it is a column of the run row."""

    runner_id: Identifier
    plugin_identity: str
    resources: AgentResources
    available_apis: ContextAPICapabilities
    workspace_id: Identifier
    bot_id: Identifier | None = None
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    state_policy: StatePolicy
    state_context: StateContext

    @cached_property
    def _operations(self) -> dict[tuple[str, str], frozenset[str]]:
        granted: dict[tuple[str, str], frozenset[str]] = {}
        resources = self.resources
        for model in resources.models:
            granted["model", model.model_id] = frozenset(model.operations) or model.ALL_OPERATIONS
        for tool in resources.tools:
            granted["tool", tool.tool_name] = frozenset(tool.operations) or tool.ALL_OPERATIONS
        for base in resources.knowledge_bases:
            granted["knowledge_base", base.kb_id] = frozenset(base.operations) or base.ALL_OPERATIONS
        for skill in resources.skills:
            granted["skill", skill.skill_name] = frozenset({"activate"})
        for file in resources.files:
            granted["file", file.file_id] = frozenset(file.operations) or file.ALL_OPERATIONS
        return granted

    def operations(self, kind: ResourceKind, resource_id: str) -> frozenset[str]:
        """Return the operations granted on a resource, none where it is not granted (H-A4)."""
        return self._operations.get((kind, resource_id), frozenset())

    def without(self, revocations: Iterable[Revocation]) -> "Authorization":
        """Return what is left of this snapshot. Nothing that is taken back can add anything (INV-10)."""
        taken = {(revocation.kind, revocation.id) for revocation in revocations}
        if not taken:
            return self
        if any(kind == "run" for kind, _ in taken):
            return self._but(
                resources=AgentResources(),
                available_apis=ContextAPICapabilities(),
                state_context=StateContext(binding_identity=self.state_context.binding_identity),
            )
        resources = self.resources
        taken_sources = {f"{KNOWLEDGE_SOURCE}{id_}" for kind, id_ in taken if kind == "knowledge_base"}
        left = {
            "models": [item for item in resources.models if ("model", item.model_id) not in taken],
            "tools": [item for item in resources.tools if ("tool", item.tool_name) not in taken],
            "knowledge_bases": [
                item for item in resources.knowledge_bases if ("knowledge_base", item.kb_id) not in taken
            ],
            "skills": [item for item in resources.skills if ("skill", item.skill_name) not in taken],
            "files": [
                item
                for item in resources.files
                if ("file", item.file_id) not in taken and item.source not in taken_sources
            ],
        }
        return self._but(resources=resources.model_copy(update=left))

    def _but(self, **changed: Any) -> "Authorization":
        # No model_copy: it would copy the operations that were looked up before, the revoked ones among them.
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Authorization.model_construct(**(fields | changed))
