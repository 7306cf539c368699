"""Answers kept under the caller's `Idempotency-Key` for 24 hours (API.md)."""

from datetime import timedelta

from sqlalchemy import ColumnElement, and_, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import JsonObject
from stores.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from stores.tables import idempotency_key

KEPT_FOR = timedelta(hours=24)


class IdempotencyStore:
    """Idempotency keys of one workspace.

    The row is written in the transaction of what the request does, so the two stand or fall together.
    """

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def find(self, key: str, operation: str, request_hash: bytes) -> JsonObject | None:
        """Return the answer that this request was given before, None where there is none.

        Raises:
            IdempotencyKeyReused: The key stands for another request.
        """
        table = idempotency_key
        rows = await self._connection.execute(
            select(table).where(self._mine(key), table.c.created_at >= func.now() - KEPT_FOR)
        )
        row = rows.mappings().one_or_none()
        if row is None:
            return None
        if row["operation"] != operation or row["request_hash"] != request_hash:
            raise IdempotencyKeyReused(
                f"Idempotency-Key {key!r} was used with another request; use a new key for a new request."
            )
        return row["response"]

    async def claim(self, key: str, operation: str, request_hash: bytes) -> JsonObject | None:
        """Take the key for this request, or return the answer that it was given before.

        Raises:
            IdempotencyKeyInUse: A request with the key is not answered yet.
            IdempotencyKeyReused: The key stands for another request.
        """
        table = idempotency_key
        # Held to the end of the transaction. Without it a second request would wait for the row of the first.
        name = f"idempotency_key {self._workspace_id} {key}"
        if not await self._connection.scalar(select(func.pg_try_advisory_xact_lock(func.hashtextextended(name, 0)))):
            raise IdempotencyKeyInUse(f"A request with Idempotency-Key {key!r} is being answered; ask again soon.")
        await self._connection.execute(delete(table).where(self._mine(key), table.c.created_at < func.now() - KEPT_FOR))
        kept = await self.find(key, operation, request_hash)
        if kept is None:
            await self._connection.execute(
                insert(table).values(
                    workspace_id=self._workspace_id,
                    key=key,
                    operation=operation,
                    request_hash=request_hash,
                    response={},
                )
            )
        return kept

    async def keep(self, key: str, response: JsonObject) -> None:
        """Store the answer under a key that this transaction has claimed."""
        table = idempotency_key
        await self._connection.execute(table.update().where(self._mine(key)).values(response=response))

    def _mine(self, key: str) -> ColumnElement[bool]:
        return and_(idempotency_key.c.workspace_id == self._workspace_id, idempotency_key.c.key == key)
