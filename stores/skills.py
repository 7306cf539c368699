"""Skills that a workspace has to grant: instructions under a name (HOST 6, G-7)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import RowMapping, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from stores.errors import SkillNotFound
from stores.registry import Registry
from stores.resource_tables import skill
from stores.revocations import revoke_everywhere

MAX_INSTRUCTIONS_CHARACTERS: Final = 256 * 1024


@dataclass(frozen=True)
class SkillRow:
    """A skill.

    Attributes:
        skill_name: What it is activated by.
        display_name: For people.
        description: What it is for, for people and models.
        instructions: What activating it answers; at most `MAX_INSTRUCTIONS_CHARACTERS`.
        sha256: Of the instructions as UTF-8, in hex.
    """

    skill_name: str
    display_name: str | None
    description: str | None
    instructions: str
    sha256: str
    created_at: datetime
    updated_at: datetime


class SkillStore:
    """Skills of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._rows = Registry(connection, workspace_id, table=skill, key=skill.c.skill_name, read=_read)

    async def put(self, new: Mapping[str, Any]) -> SkillRow:
        """Create or change a skill.

        Args:
            new: ``skill_name``, ``instructions``, and perhaps ``display_name`` and ``description``. What is
                left out keeps what is stored.
        """
        # A lone surrogate has no UTF-8 and is text of a skill all the same (D-31).
        instructions = new["instructions"].encode("utf-8", "surrogatepass")
        values = {**new, "sha256": hashlib.sha256(instructions).hexdigest()}
        row = await self._connection.execute(
            insert(skill)
            .values(workspace_id=self._workspace_id, **values)
            .on_conflict_do_update(
                index_elements=[skill.c.workspace_id, skill.c.skill_name],
                set_={**values, "updated_at": func.now()},
            )
            .returning(skill)
        )
        return _read(row.mappings().one())

    async def get(self, skill_name: str) -> SkillRow:
        """Return a skill.

        Raises:
            SkillNotFound: There is none in this workspace.
        """
        found = await self._rows.find(skill_name)
        if found is None:
            raise _not_found(skill_name)
        return found

    async def list(self, *, after: str = "", limit: int) -> list[SkillRow]:
        """Return skills in order of their names, from behind ``after``."""
        return await self._rows.list(after=after, limit=limit)

    async def delete(self, skill_name: str) -> None:
        """Delete a skill and take it back from open runs.

        Raises:
            SkillNotFound: There is none in this workspace.
        """
        if not await self._rows.delete(skill_name):
            raise _not_found(skill_name)
        await revoke_everywhere(self._connection, self._workspace_id, "skill", skill_name, "The skill was deleted.")


def _read(row: RowMapping) -> SkillRow:
    return SkillRow(**{name: value for name, value in row.items() if name != "workspace_id"})


def _not_found(skill_name: str) -> SkillNotFound:
    return SkillNotFound(f"There is no skill {skill_name!r} in this workspace.")
