"""Bindings: which events lead to which agent (HOST 4, D-41)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import RowMapping, and_, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentConfig, AgentEventEnvelope
from stores.errors import BindingNotFound
from stores.tables import agent, binding

ScopeType = Literal["workspace", "bot"]
# The most specific level wins.
_LEVELS: Sequence[ScopeType] = ("bot", "workspace")


@dataclass(frozen=True)
class Binding:
    """A rule that leads events to an agent. ``scope_id`` is the bot's id, and None for the workspace."""

    binding_id: str
    agent_id: str
    scope_type: ScopeType
    scope_id: str | None
    event_types: tuple[str, ...]
    priority: int
    enabled: bool
    updated_at: datetime


@dataclass(frozen=True)
class Route:
    """Where an event leads: an agent in a version, and the binding that says so (None for a direct run)."""

    agent_id: str
    agent_version: int
    config: AgentConfig
    binding_id: str | None


@dataclass(frozen=True)
class NoRoute:
    """Nothing, or too much, matched. ``binding_ids`` names the contenders."""

    binding_ids: tuple[str, ...] = ()


class BindingStore:
    """Bindings of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def put(self, new: Mapping[str, Any]) -> Binding:
        """Create or replace a binding by its id. ``new`` has the fields of `Binding` but ``updated_at``."""
        values = {**new, "event_types": list(new["event_types"])}
        statement = insert(binding).values(workspace_id=self._workspace_id, **values)
        row = await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=[binding.c.workspace_id, binding.c.binding_id],
                set_={**values, "updated_at": func.now()},
            ).returning(binding)
        )
        return _read(row.mappings().one())

    async def get(self, binding_id: str) -> Binding:
        """Return a binding.

        Raises:
            BindingNotFound: There is none in this workspace.
        """
        row = await self._connection.execute(
            select(binding).where(binding.c.workspace_id == self._workspace_id, binding.c.binding_id == binding_id)
        )
        found = row.mappings().one_or_none()
        if found is None:
            raise BindingNotFound(f"There is no binding {binding_id!r} in this workspace.")
        return _read(found)

    async def list(self, *, after: str = "", limit: int) -> list[Binding]:
        """Return bindings in order of their ids, from behind ``after``."""
        rows = await self._connection.execute(
            select(binding)
            .where(binding.c.workspace_id == self._workspace_id, binding.c.binding_id > after)
            .order_by(binding.c.binding_id)
            .limit(limit)
        )
        return [_read(row) for row in rows.mappings()]

    async def resolve(self, envelope: AgentEventEnvelope) -> Route | NoRoute:
        """Find the one agent that this event leads to.

        Candidates are enabled bindings of enabled agents whose event types contain the event's (H-B1). The
        most specific level wins, then the highest priority; what is equal after that is no choice of ours
        (H-B3, D-41).
        """
        rows = await self._connection.execute(
            select(binding, agent.c.version, agent.c.config)
            .join(
                agent,
                and_(
                    agent.c.workspace_id == binding.c.workspace_id,
                    agent.c.agent_id == binding.c.agent_id,
                    agent.c.is_current,
                ),
            )
            .where(
                binding.c.workspace_id == self._workspace_id,
                binding.c.enabled,
                binding.c.event_types.contains([envelope.event_type]),
                or_(
                    binding.c.scope_type == "workspace",
                    and_(binding.c.scope_type == "bot", binding.c.scope_id == envelope.bot_id),
                ),
            )
            .order_by(binding.c.binding_id)
        )
        candidates = [
            (row, config) for row in rows.mappings() if (config := AgentConfig.model_validate(row["config"])).enabled
        ]
        if not candidates:
            return NoRoute()
        best = min(_rank(row) for row, _ in candidates)
        winners = [(row, config) for row, config in candidates if _rank(row) == best]
        if len(winners) > 1:
            return NoRoute(tuple(row["binding_id"] for row, _ in winners))
        row, config = winners[0]
        return Route(row["agent_id"], row["version"], config, row["binding_id"])


def _rank(row: RowMapping) -> tuple[int, int]:
    return _LEVELS.index(row["scope_type"]), -row["priority"]


def _read(row: RowMapping) -> Binding:
    return Binding(
        binding_id=row["binding_id"],
        agent_id=row["agent_id"],
        scope_type=row["scope_type"],
        scope_id=row["scope_id"],
        event_types=tuple(row["event_types"]),
        priority=row["priority"],
        enabled=row["enabled"],
        updated_at=row["updated_at"],
    )
