"""Managed agents: what to run, under which policies."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, Select, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentConfig
from stores.errors import AgentNotFound
from stores.tables import agent


@dataclass(frozen=True)
class AgentVersion:
    """One version of an agent. A change makes the next one; a run keeps the one it used."""

    agent_id: str
    version: int
    config: AgentConfig
    created_at: datetime


class AgentStore:
    """Agents of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def put(self, agent_id: str, config: AgentConfig) -> AgentVersion:
        """Make ``config`` the agent's current version; the same config again changes nothing."""
        # A new agent has no row to lock, and two callers must not both write its first version.
        name = f"agent {self._workspace_id} {agent_id}"
        await self._connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))
        current = await self._find(self._current(agent_id))
        if current is not None and current.config == config:
            return current
        await self._connection.execute(
            update(agent)
            .where(agent.c.workspace_id == self._workspace_id, agent.c.agent_id == agent_id, agent.c.is_current)
            .values(is_current=False)
        )
        row = await self._connection.execute(
            insert(agent)
            .values(
                workspace_id=self._workspace_id,
                agent_id=agent_id,
                version=current.version + 1 if current else 1,
                is_current=True,
                config=config.model_dump(mode="json"),
            )
            .returning(agent)
        )
        return _read(row.mappings().one())

    async def get(self, agent_id: str, version: int | None = None) -> AgentVersion:
        """Return the current version, or the one asked for.

        Raises:
            AgentNotFound: There is none in this workspace.
        """
        query = self._current(agent_id)
        if version is not None:
            query = select(agent).where(
                agent.c.workspace_id == self._workspace_id,
                agent.c.agent_id == agent_id,
                agent.c.version == version,
            )
        found = await self._find(query)
        if found is None:
            raise AgentNotFound(f"There is no agent {agent_id!r} in this workspace.")
        return found

    async def list(self, *, after: str = "", limit: int) -> list[AgentVersion]:
        """Return current versions in order of their ids, from behind ``after``."""
        rows = await self._connection.execute(
            select(agent)
            .where(agent.c.workspace_id == self._workspace_id, agent.c.is_current, agent.c.agent_id > after)
            .order_by(agent.c.agent_id)
            .limit(limit)
        )
        return [_read(row) for row in rows.mappings()]

    def _current(self, agent_id: str) -> Select[Any]:
        return select(agent).where(
            agent.c.workspace_id == self._workspace_id, agent.c.agent_id == agent_id, agent.c.is_current
        )

    async def _find(self, query: Select[Any]) -> AgentVersion | None:
        row = (await self._connection.execute(query)).mappings().one_or_none()
        return None if row is None else _read(row)


def _read(row: RowMapping) -> AgentVersion:
    return AgentVersion(
        agent_id=row["agent_id"],
        version=row["version"],
        config=AgentConfig.model_validate(row["config"]),
        created_at=row["created_at"],
    )
