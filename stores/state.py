"""Host-owned state of runners (HOST 10). What a result carries is written by the journal's commits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import asyncpg
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import JsonObject, JsonValue
from stores.escaping import escape, restore
from stores.fence import OPEN_ATTEMPT, READING_ATTEMPT, Fence, stale
from stores.jsonb import dumps, loads
from stores.tables import runner_state

ALIASES: Final = {"conversation_id": "external.conversation_id"}

_GET = f"""
WITH {READING_ATTEMPT}
SELECT (
    SELECT value FROM runner_state
    WHERE scope_key = $3 AND state_key = $4 AND runner_state.workspace_id = fence.workspace_id
)
FROM fence
"""  # noqa: S608 - constants only
_SET = f"""
WITH {OPEN_ATTEMPT}
INSERT INTO runner_state (scope_key, state_key, workspace_id, scope, runner_id, binding_identity, conversation_id,
    value, run_id)
SELECT $3, $4, workspace_id, $5, runner_id, $6, $7, $8::jsonb, run_id FROM fence
ON CONFLICT (scope_key, state_key) DO UPDATE
SET value = excluded.value, run_id = excluded.run_id, sequence = NULL, updated_at = now()
RETURNING true
"""  # noqa: S608 - constants only
_DELETE = f"""
WITH {OPEN_ATTEMPT}, gone AS (
    DELETE FROM runner_state USING fence
    WHERE scope_key = $3 AND state_key = $4 AND runner_state.workspace_id = fence.workspace_id
    RETURNING true
)
SELECT EXISTS (SELECT FROM gone) FROM fence
"""  # noqa: S608 - constants only
# In the order of code points, whatever the database's collation is.
_LIST = f"""
WITH {READING_ATTEMPT}
SELECT ARRAY(
    SELECT state_key FROM runner_state
    WHERE scope_key = $3 AND runner_state.workspace_id = fence.workspace_id AND starts_with(state_key, $4)
    ORDER BY state_key COLLATE "C"
    LIMIT $5
)
FROM fence
"""  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class StateOwner:
    """Whose state it is: one scope of one run.

    Attributes:
        scope_key: Key of the scope, which nobody else shares (H-S1).
        scope: Its name.
    """

    workspace_id: str
    scope_key: str
    scope: str
    binding_identity: str
    conversation_id: str | None


def storage_key(key: str) -> str:
    """Return the name under which a key, or a prefix of keys, is stored (H-S5)."""
    return ALIASES.get(key, key)


class StateStore:
    """State by scope key; the key itself says whose it is (H-S1)."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def snapshot(self, scope_keys: Mapping[str, str]) -> dict[str, JsonObject]:
        """Return all keys of each scope, by scope name; an empty object where a scope holds nothing."""
        table = runner_state
        rows = await self._connection.execute(
            select(table.c.scope_key, table.c.state_key, table.c.value)
            .where(table.c.scope_key.in_(list(scope_keys.values())))
            .order_by(table.c.state_key)
        )
        found: dict[str, JsonObject] = {key: {} for key in scope_keys.values()}
        for scope_key, state_key, value in rows:
            found[scope_key][state_key] = value
        return {scope: found[key] for scope, key in scope_keys.items()}


class RunningState:
    """State as a running attempt reads and writes it, between its results: each call one statement of its own."""

    def __init__(self, pool: asyncpg.Pool, owner: StateOwner) -> None:
        self._pool = pool
        self._owner = owner

    async def get(self, fence: Fence, key: str) -> JsonValue:
        """Return a value; None where there is none, or it is null.

        Raises:
            StaleAttempt: The fence has passed.
        """
        row = await self._pool.fetchrow(
            _GET, fence.run_id, fence.attempt, self._owner.scope_key, escape(storage_key(key))
        )
        if row is None:
            raise stale()
        return None if row[0] is None else loads(row[0])

    async def set(self, fence: Fence, key: str, value: JsonValue) -> None:
        """Keep a value, of any size: the caller has measured it.

        Raises:
            StaleAttempt: The fence has passed; nothing is written.
        """
        owner = self._owner
        written = await self._pool.fetchval(
            _SET,
            fence.run_id,
            fence.attempt,
            owner.scope_key,
            escape(storage_key(key)),
            owner.scope,
            owner.binding_identity,
            owner.conversation_id,
            None if value is None else dumps(value),
        )
        if written is None:
            raise stale()

    async def delete(self, fence: Fence, key: str) -> bool:
        """Delete a value; says whether there was one.

        Raises:
            StaleAttempt: The fence has passed; nothing is deleted.
        """
        gone: bool | None = await self._pool.fetchval(
            _DELETE, fence.run_id, fence.attempt, self._owner.scope_key, escape(storage_key(key))
        )
        if gone is None:
            raise stale()
        return gone

    async def list(self, fence: Fence, prefix: str, *, limit: int) -> list[str]:
        """Return keys that begin with ``prefix`` as it stands, in the order of their code points (H-S8).

        Raises:
            StaleAttempt: The fence has passed.
        """
        keys: list[str] | None = await self._pool.fetchval(
            _LIST, fence.run_id, fence.attempt, self._owner.scope_key, escape(storage_key(prefix)), limit
        )
        if keys is None:
            raise stale()
        return [restore(key) for key in keys]
