"""What exists in a workspace, of the things that one run asks for (D-10)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from stores.escaping import restore
from stores.registry_lock import hold_registries

MAX_DOCUMENTS: Final = 500
"""Documents of all asked bases that are read, the newest first."""

# All in one statement: a round trip is most of what a lookup costs. Each part has the columns of the first.
_PARTS: Final = {
    "models": """
SELECT 'models' AS kind, model_id AS id, name, model_type AS type, provider AS note, NULL AS parent,
    context_window_tokens AS number
FROM model WHERE workspace_id = :workspace_id AND enabled AND model_id = ANY(:models)""",
    "tools": """
SELECT 'tools', tool_name, NULL, NULL, t.description, NULL, NULL
FROM tool t JOIN tool_server s USING (workspace_id, server_id)
WHERE t.workspace_id = :workspace_id AND s.enabled AND tool_name = ANY(:tools)""",
    "knowledge_bases": """
SELECT 'knowledge_bases', kb_id, name, kb_type, NULL, NULL, NULL
FROM knowledge_base WHERE workspace_id = :workspace_id AND kb_id = ANY(:knowledge_bases)""",
    "all_skills": """
SELECT 'skills', skill_name, display_name, NULL, description, NULL, NULL
FROM skill WHERE workspace_id = :workspace_id""",
    "skills": """
SELECT 'skills', skill_name, display_name, NULL, description, NULL, NULL
FROM skill WHERE workspace_id = :workspace_id AND skill_name = ANY(:skills)""",
    "files": """
SELECT 'files', file_key, file_name, mime_type, NULL, NULL, NULL
FROM config_file WHERE workspace_id = :workspace_id AND file_key = ANY(:files)""",
    "documents": f"""
(SELECT 'documents', file_key::text, name, mime_type, NULL, kb_id, NULL
FROM knowledge_document WHERE workspace_id = :workspace_id AND kb_id = ANY(:documents)
ORDER BY created_at DESC, file_key LIMIT {MAX_DOCUMENTS})""",  # noqa: S608 - a constant
}


@dataclass(frozen=True)
class CatalogQuery:
    """What to look up, by ids.

    Attributes:
        skills: None for all that there are.
        documents: Knowledge bases whose documents are wanted.
    """

    models: Sequence[str] = ()
    tools: Sequence[str] = ()
    knowledge_bases: Sequence[str] = ()
    skills: Sequence[str] | None = ()
    files: Sequence[str] = ()
    documents: Sequence[str] = ()

    def by_part(self) -> dict[str, list[str]]:
        """Return the ids of what is asked for at all, by the part of the statement that reads them."""
        asked = {
            "models": self.models,
            "tools": self.tools,
            "knowledge_bases": self.knowledge_bases,
            "skills": self.skills or (),
            "files": self.files,
            "documents": self.documents,
        }
        parts = {part: list(ids) for part, ids in asked.items() if ids}
        return parts if self.skills is not None else parts | {"all_skills": []}


class CatalogModel(NamedTuple):
    """A model that is enabled."""

    model_type: str
    provider: str
    context_window_tokens: int | None = None


class CatalogEntry(NamedTuple):
    """Anything else: a tool, a knowledge base, a skill, a file, a document.

    Attributes:
        name: For people.
        type: Kind of base, media type of a file or document.
        kb_id: Base of a document.
    """

    name: str | None = None
    type: str | None = None
    description: str | None = None
    kb_id: str | None = None


@dataclass(frozen=True)
class Catalog:
    """What of a `CatalogQuery` exists in the workspace, by id and in no order.

    Attributes:
        documents: By the key of their file, the newest first, at most `MAX_DOCUMENTS`.
    """

    models: dict[str, CatalogModel] = field(default_factory=dict[str, CatalogModel])
    tools: dict[str, CatalogEntry] = field(default_factory=dict[str, CatalogEntry])
    knowledge_bases: dict[str, CatalogEntry] = field(default_factory=dict[str, CatalogEntry])
    skills: dict[str, CatalogEntry] = field(default_factory=dict[str, CatalogEntry])
    files: dict[str, CatalogEntry] = field(default_factory=dict[str, CatalogEntry])
    documents: dict[str, CatalogEntry] = field(default_factory=dict[str, CatalogEntry])


class CatalogStore:
    """The registries of one workspace, as a run that is prepared sees them."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def read(self, query: CatalogQuery) -> Catalog:
        """Look everything up in one statement, or in none where nothing is asked for.

        Until the transaction ends, a revocation from all runs waits for it (`stores.registry_lock`), so it has
        to be the one that freezes the snapshot.
        """
        catalog = Catalog()
        asked = query.by_part()
        if not asked:
            return catalog
        await hold_registries(self._connection, self._workspace_id)
        ids = {part: values for part, values in asked.items() if values}
        rows = await self._connection.execute(_statement(tuple(asked)), {"workspace_id": self._workspace_id, **ids})
        entries = {
            "tools": catalog.tools,
            "knowledge_bases": catalog.knowledge_bases,
            "skills": catalog.skills,
            "files": catalog.files,
            "documents": catalog.documents,
        }
        for kind, id_, name, type_, note, parent, number in rows.all():
            if kind == "models":
                catalog.models[id_] = CatalogModel(type_, note, number)
            else:
                entries[kind][id_] = CatalogEntry(name and restore(name), type_, note and restore(note), parent)
        return catalog


@lru_cache(maxsize=64)
def _statement(parts: tuple[str, ...]) -> TextClause:
    return text("\nUNION ALL".join(_PARTS[part] for part in parts))
