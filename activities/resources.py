"""What a run may reach: permissions, policy and config crossed with what exists (HOST 6.1, D-10 to D-13).

Nothing here asks anybody: the result depends on the arguments alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from activities.selectors import read_selectors, unique
from host_api.authorization import ACTIVATE, KNOWLEDGE_SOURCE
from runhost.protocol import (
    AgentResources,
    AgentRunnerCapabilities,
    AgentRunnerPermissions,
    JsonObject,
    JsonValue,
    ResourcePolicy,
)
from stores.catalog import Catalog, CatalogModel, CatalogQuery

_LLM_OPERATIONS: Final = ("invoke", "stream")
_RERANK: Final = "rerank"


class ResourceRequest:
    """What an agent wants of its workspace, within what its runner asks for and its policy allows.

    Args:
        permissions: Most that the runner asks for; nothing beyond it is ever granted.
        capabilities: What the runner can do; tools, bases and skills need theirs.
        policy: What is added to what the config selects, and what is taken away, which always wins.
        runner_config: The agent's config.
        config_schema: The form that says what in it is a selector.
    """

    def __init__(
        self,
        permissions: AgentRunnerPermissions,
        capabilities: AgentRunnerCapabilities,
        policy: ResourcePolicy,
        runner_config: JsonObject,
        config_schema: Sequence[Mapping[str, JsonValue]],
    ) -> None:
        self._permissions = permissions
        self._can_activate = capabilities.tool_calling and capabilities.skill_authoring
        self._policy = policy
        selected = read_selectors(runner_config, config_schema)
        self._llm_models = set(selected.llm_models)
        self._rerank_models = set(selected.rerank_models)
        self._added_models = set(policy.allowed_model_uuids or ())
        self._models = self._wanted_models(selected.llm_models, selected.rerank_models)
        can_use_tools = capabilities.tool_calling and permissions.tools
        self._tools = self._wanted_tools() if can_use_tools else []
        can_retrieve = capabilities.knowledge_retrieval and permissions.knowledge_bases
        self._bases = self._wanted_bases(selected.knowledge_bases) if can_retrieve else []
        self._skills = self._wanted_skills() if capabilities.skill_authoring else []
        self._files = selected.files if "config" in permissions.files else {}
        self._may_read_documents = "knowledge" in permissions.files

    @property
    def query(self) -> CatalogQuery:
        """What has to be looked up; nothing for an agent that wants nothing."""
        return CatalogQuery(
            models=self._models,
            tools=self._tools,
            knowledge_bases=self._bases,
            skills=self._skills,
            files=list(self._files),
            documents=self._bases if self._may_read_documents else (),
        )

    def build(self, catalog: Catalog) -> JsonObject:
        """Return what is granted, an `AgentResources` as JSON: what is wanted and in the catalog.

        Each list has every id once: what the config selects, in the order of the form, then what the policy
        adds. Files of a granted base are those of its newest documents, as many as the catalog reads
        (`stores.catalog.MAX_DOCUMENTS` over all bases): a context is no index, and `retrieve` finds the rest.

        JSON and no models, because it is stored twice as that: with 500 grants, models would take longer to
        make and to dump than everything else here.

        Args:
            catalog: The answer to `query`.
        """
        skills = list(self._grant_skills(catalog))
        permitted = self._permissions.storage
        return {
            "models": list(self._grant_models(catalog)),
            "tools": list(self._grant_tools(catalog, has_skills=bool(skills))),
            "knowledge_bases": list(self._grant_bases(catalog)),
            "skills": skills,
            "files": [*self._grant_files(catalog), *self._grant_documents(catalog)],
            "storage": {
                "plugin_storage": "plugin" in permitted and self._policy.allow_plugin_storage,
                "workspace_storage": "workspace" in permitted and self._policy.allow_workspace_storage,
            },
            "platform_capabilities": {},
        }

    def unknown(self, catalog: Catalog) -> dict[str, int]:
        """Return how many ids of which kind are named and left out, because they do not exist."""
        named = {
            "model": (self._models, catalog.models),
            "tool": (self._tools, catalog.tools),
            "knowledge_base": (self._bases, catalog.knowledge_bases),
            "skill": (self._skills or (), catalog.skills),
            "file": (self._files, catalog.files),
        }
        counted = {kind: sum(id_ not in found for id_ in ids) for kind, (ids, found) in named.items()}
        return {kind: count for kind, count in counted.items() if count}

    def _wanted_models(self, llm: list[str], rerank: list[str]) -> list[str]:
        permitted = self._permissions.models
        may_llm = any(operation in permitted for operation in _LLM_OPERATIONS)
        added = self._policy.allowed_model_uuids or () if permitted else ()
        wanted = [*(llm if may_llm else ()), *added, *(rerank if _RERANK in permitted else ())]
        return _without(wanted, self._policy.denied_model_uuids)

    def _wanted_tools(self) -> list[str]:
        # The host's own tool is no entry of a registry, and one that has its name is hidden by it (HOST 6.1).
        return _without(self._policy.allowed_tool_names or (), [*self._policy.denied_tool_names, ACTIVATE])

    def _wanted_bases(self, selected: list[str]) -> list[str]:
        return _without([*selected, *(self._policy.allowed_kb_uuids or ())], self._policy.denied_kb_uuids)

    def _wanted_skills(self) -> list[str] | None:
        allowed = self._policy.allowed_skill_names
        return None if allowed is None else sorted(_without(allowed, self._policy.denied_skill_names))

    def _grant_models(self, catalog: Catalog) -> Iterator[JsonValue]:
        permitted = self._permissions.models
        for model_id in self._models:
            model = catalog.models.get(model_id)
            if model is None:
                continue
            operations: list[JsonValue] = [name for name in self._roles(model_id, model) if name in permitted]
            # A grant without operations would be one of all of them (PROTOCOL 6).
            if operations:
                yield {
                    "operations": operations,
                    "model_id": model_id,
                    "model_type": model.model_type,
                    "provider": model.provider,
                }

    def _roles(self, model_id: str, model: CatalogModel) -> tuple[str, ...]:
        # A selector gives the role of its kind (D-12); what the policy adds has the role of its own type.
        is_added, is_ranker = model_id in self._added_models, model.model_type == _RERANK
        writes = model_id in self._llm_models or (is_added and not is_ranker)
        ranks = model_id in self._rerank_models or (is_added and is_ranker)
        return (*(_LLM_OPERATIONS if writes else ()), *((_RERANK,) if ranks else ()))

    def _grant_tools(self, catalog: Catalog, *, has_skills: bool) -> Iterator[JsonValue]:
        operations: list[JsonValue] = [name for name in ("detail", "call") if name in self._permissions.tools]
        for name in self._tools:
            tool = catalog.tools.get(name)
            if tool is not None:
                yield {
                    "operations": operations,
                    "tool_name": name,
                    "tool_type": "mcp",
                    "description": tool.description,
                }
        is_denied = ACTIVATE in self._policy.denied_tool_names
        if self._can_activate and has_skills and "call" in operations and not is_denied:
            yield {
                "operations": operations,
                "tool_name": ACTIVATE,
                "tool_type": "skill",
                "description": "Return the instructions of a skill.",
            }

    def _grant_bases(self, catalog: Catalog) -> Iterator[JsonValue]:
        permitted = self._permissions.knowledge_bases
        operations: list[JsonValue] = [name for name in ("list", "retrieve") if name in permitted]
        for kb_id in self._bases:
            base = catalog.knowledge_bases.get(kb_id)
            if base is not None:
                yield {"operations": operations, "kb_id": kb_id, "kb_name": base.name, "kb_type": base.type}

    def _grant_skills(self, catalog: Catalog) -> Iterator[JsonValue]:
        names = catalog.skills if self._skills is None else self._skills
        for name in sorted(_without(names, self._policy.denied_skill_names)):
            skill = catalog.skills.get(name)
            if skill is not None:
                yield {"skill_name": name, "display_name": skill.name or name, "description": skill.description}

    def _grant_files(self, catalog: Catalog) -> Iterator[JsonValue]:
        for file_id, selected in self._files.items():
            file = catalog.files.get(file_id)
            if file is not None:
                yield {
                    "operations": ["config"],
                    "file_id": file_id,
                    "file_name": selected.file_name or file.name,
                    "mime_type": selected.mime_type or file.type,
                    "source": "config",
                }

    def _grant_documents(self, catalog: Catalog) -> Iterator[JsonValue]:
        granted = set(self._bases) & catalog.knowledge_bases.keys() if self._may_read_documents else set[str]()
        for file_id, document in catalog.documents.items():
            if document.kb_id in granted and file_id not in self._files:
                yield {
                    "operations": ["knowledge"],
                    "file_id": file_id,
                    "file_name": document.name,
                    "mime_type": document.type,
                    "source": f"{KNOWLEDGE_SOURCE}{document.kb_id}",
                }


def context_window_tokens(resources: AgentResources, catalog: Catalog) -> int | None:
    """Return the window of the first model that is granted for writing, None where none is known (H-C6, F-8)."""
    for model in resources.models:
        if any(operation in model.operations for operation in _LLM_OPERATIONS):
            return catalog.models[model.model_id].context_window_tokens
    return None


def _without(ids: Iterable[str], denied: Sequence[str]) -> list[str]:
    taken = set(denied)
    return [id_ for id_ in unique(ids) if id_ not in taken]
