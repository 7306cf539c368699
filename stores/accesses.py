"""Reading the audit of the host API: who touched what in a run. `host_api.audit` writes it."""

from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from stores.tables import access_audit


@dataclass(frozen=True)
class AccessRow:
    """One call of the host API.

    Attributes:
        access_id: Position; rises with time.
        action: The method.
        resource: What it reached for, such as `model:gpt`.
        scope: Operation, state scope, storage area or conversation.
        result: `ok`, `cancelled`, or the code of the refusal (PROTOCOL 10).
        duration_us: Microseconds from its arrival to its answer.
    """

    access_id: int
    run_id: UUID
    attempt: int | None
    runner_id: str | None
    action: str
    resource: str | None
    scope: str | None
    result: str
    duration_us: int
    created_at: datetime


_COLUMNS = [access_audit.c[item.name] for item in fields(AccessRow)]


class AccessStore:
    """The audit of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

    async def list_of_run(self, run_id: UUID, *, before: int | None = None, limit: int) -> list[AccessRow]:
        """Return calls of a run from before position ``before``, newest first."""
        query = select(*_COLUMNS).where(
            access_audit.c.workspace_id == self._workspace_id, access_audit.c.run_id == run_id
        )
        if before is not None:
            query = query.where(access_audit.c.access_id < before)
        rows = await self._connection.execute(query.order_by(access_audit.c.access_id.desc()).limit(limit))
        return [AccessRow(**row) for row in rows.mappings()]
