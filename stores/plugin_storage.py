"""Bytes that plugins keep between runs: an area of each plugin, and one of the workspace that all share (D-17)."""

from typing import Final

import asyncpg

from stores.escaping import escape, restore
from stores.fence import OPEN_ATTEMPT, Fence, stale

WORKSPACE: Final = "workspace"
"""Owner of what all plugins of a workspace share. No plugin is called so: an identity has a slash."""

MAX_KEYS: Final = 10_000
"""Keys of one owner, so that they fit one answer."""

_GET = "SELECT value FROM plugin_storage WHERE workspace_id = $1 AND owner = $2 AND key = $3"
# `allowed` says no to a new key where there are enough; two that come at the same time may both be let through.
_SET = f"""
WITH {OPEN_ATTEMPT}, allowed AS (
    SELECT EXISTS (
        SELECT FROM plugin_storage s WHERE s.workspace_id = fence.workspace_id AND s.owner = $3 AND s.key = $4
    ) OR (
        SELECT count(*) FROM plugin_storage s WHERE s.workspace_id = fence.workspace_id AND s.owner = $3
    ) < $6 AS yes
    FROM fence
), kept AS (
    INSERT INTO plugin_storage (workspace_id, owner, key, value, run_id)
    SELECT fence.workspace_id, $3, $4, $5, fence.run_id FROM fence, allowed WHERE allowed.yes
    ON CONFLICT (workspace_id, owner, key) DO UPDATE
    SET value = excluded.value, run_id = excluded.run_id, updated_at = now()
)
SELECT yes FROM allowed
"""  # noqa: S608 - constants only
_DELETE = f"""
WITH {OPEN_ATTEMPT}, gone AS (
    DELETE FROM plugin_storage s USING fence WHERE s.workspace_id = fence.workspace_id AND s.owner = $3 AND s.key = $4
    RETURNING true
)
SELECT EXISTS (SELECT FROM gone) FROM fence
"""  # noqa: S608 - constants only
_KEYS = 'SELECT key FROM plugin_storage WHERE workspace_id = $1 AND owner = $2 ORDER BY key COLLATE "C"'


class TooManyKeys(Exception):
    """The owner has `MAX_KEYS` keys already."""


class PluginStorage:
    """The area of one owner in one workspace; each call is one statement of its own."""

    def __init__(self, pool: asyncpg.Pool, workspace_id: str, owner: str) -> None:
        self._pool = pool
        self._workspace_id = workspace_id
        self._owner = owner

    async def get(self, key: str) -> bytes | None:
        """Return a value, None where there is none."""
        value: bytes | None = await self._pool.fetchval(_GET, self._workspace_id, self._owner, escape(key))
        return value

    async def set(self, fence: Fence, key: str, value: bytes) -> None:
        """Keep a value, of any size: the caller has measured it.

        Raises:
            StaleAttempt: The fence has passed; nothing is written.
            TooManyKeys: The key is new, and there are `MAX_KEYS`; nothing is written.
        """
        allowed: bool | None = await self._pool.fetchval(
            _SET, fence.run_id, fence.attempt, self._owner, escape(key), value, MAX_KEYS
        )
        if allowed is None:
            raise stale()
        if not allowed:
            raise TooManyKeys

    async def delete(self, fence: Fence, key: str) -> bool:
        """Delete a value; says whether there was one.

        Raises:
            StaleAttempt: The fence has passed; nothing is deleted.
        """
        gone: bool | None = await self._pool.fetchval(_DELETE, fence.run_id, fence.attempt, self._owner, escape(key))
        if gone is None:
            raise stale()
        return gone

    async def keys(self) -> list[str]:
        """Return all keys, in the order of their code points."""
        rows = await self._pool.fetch(_KEYS, self._workspace_id, self._owner)
        return [restore(row["key"]) for row in rows]
