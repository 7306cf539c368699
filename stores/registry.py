"""Rows under ids that people choose, in one workspace: what all registries have in common."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, RowMapping, Select, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

Row = TypeVar("Row")


class Registry(Generic[Row]):
    """Reads and deletes the rows of one table.

    Args:
        connection: The caller's, who owns the transaction.
        workspace_id: Rows of other workspaces do not exist here.
        table: The table; it has a column ``workspace_id``.
        key: The column of the ids.
        read: Makes a row of what was selected.
        columns: What to select; all columns unless told otherwise.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        workspace_id: str,
        *,
        table: Table,
        key: Column[Any],
        read: Callable[[RowMapping], Row],
        columns: Sequence[Column[Any]] = (),
    ) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._table = table
        self._key = key
        self._read = read
        self._columns = columns or tuple(table.columns)

    async def find(self, key: str) -> Row | None:
        """Return the row of an id, None where there is none."""
        rows = await self._connection.execute(self._select().where(self._key == key))
        found = rows.mappings().one_or_none()
        return None if found is None else self._read(found)

    async def list(self, *, after: str, limit: int) -> list[Row]:
        """Return rows in order of their ids, from behind ``after``."""
        rows = await self._connection.execute(self._select().where(self._key > after).order_by(self._key).limit(limit))
        return [self._read(row) for row in rows.mappings()]

    async def delete(self, key: str) -> bool:
        """Delete the row of an id; says whether there was one."""
        gone = await self._connection.execute(
            delete(self._table).where(self._table.c.workspace_id == self._workspace_id, self._key == key)
        )
        return gone.rowcount == 1

    def _select(self) -> Select[Any]:
        return select(*self._columns).where(self._table.c.workspace_id == self._workspace_id)
