"""What the methods of the host API work with; built once per process and handed down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from host_api.knowledge import KnowledgeProvider, PostgresKnowledge
from providers.models import ModelProvider, NoModels
from providers.tools import NoTools, ToolProvider
from stores.cursors import CursorSigner
from stores.knowledge import POSTGRES


@dataclass(frozen=True)
class HostServices:
    """What a process gives to the host API.

    Attributes:
        engine: The database, for what is not called a thousand times a second.
        pool: The same database past SQLAlchemy, for the statements on the path of every call.
        cursors: Signs and reads cursors.
        host_version: What `get_langbot_version` answers.
        models: Calls models.
        tools: Calls tools.
        other_knowledge: Retrieves from knowledge bases of further kinds.
        file_root: Folder that file artifacts must lie in; None where there are none.
    """

    engine: AsyncEngine
    pool: asyncpg.Pool
    cursors: CursorSigner
    host_version: str
    file_root: Path | None = None
    models: ModelProvider = field(default_factory=NoModels)
    tools: ToolProvider = field(default_factory=NoTools)
    other_knowledge: Mapping[str, KnowledgeProvider] = field(default_factory=dict[str, KnowledgeProvider])

    @cached_property
    def knowledge_providers(self) -> Mapping[str, KnowledgeProvider]:
        """Who retrieves, by the kind of the base."""
        return {**self.other_knowledge, POSTGRES: PostgresKnowledge(self.engine)}
