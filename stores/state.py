"""Host-owned state of runners (HOST 10). Writes ride in the journal's commits; this reads."""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import JsonObject
from stores.tables import runner_state


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
