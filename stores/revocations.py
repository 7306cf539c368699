"""Taking grants back from open runs (D-15, INV-10).

A revocation is an entry of the run's list, which only grows, and a row of its ledger. Whoever checks a call
reads the list anew, so it counts from the next call on. The caller tells the readers of the ledger after its
transaction has committed (`stores.notifications`); one that is not told finds the row within a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import OPEN, HostEventType, JsonObject, JsonValue
from stores.columns import UUID as UUID_TYPE
from stores.errors import NotGranted, RunNotFound, RunTerminal
from stores.jsonb import dumps
from stores.ledger import LedgerStore
from stores.registry_lock import seize_registries
from stores.tables import agent_run

GrantKind: TypeAlias = Literal["model", "tool", "knowledge_base", "skill", "file"]
"""What is granted by id."""

RevocationKind: TypeAlias = Literal["model", "tool", "knowledge_base", "skill", "file", "run"]
"""What can be taken back; `run` takes everything that the run may reach."""

# Where the snapshot lists what is granted, and the name of its id there (PROTOCOL 6).
_LISTED: dict[str, tuple[str, str]] = {
    "model": ("models", "model_id"),
    "tool": ("tools", "tool_name"),
    "knowledge_base": ("knowledge_bases", "kb_id"),
    "skill": ("skills", "skill_name"),
    "file": ("files", "file_id"),
}
_OPEN = [status.value for status in OPEN]
_ALL_TAKEN = dumps([{"kind": "run"}])

_LOCK = text("""
SELECT status, status = ANY(:open) AS is_open,
    "authorization" IS NULL OR "authorization" @> CAST(:grant AS jsonb) AS is_granted,
    revocations @> CAST(:taken AS jsonb) OR revocations @> CAST(:all_taken AS jsonb) AS is_taken
FROM agent_run WHERE run_id = :run_id AND workspace_id = :workspace_id
FOR NO KEY UPDATE
""")
# In the order of their ids, so that two who lock several runs never wait for each other.
_LOCK_HOLDERS = text("""
SELECT run_id FROM agent_run
WHERE workspace_id = :workspace_id AND status = ANY(:open) AND "authorization" @> CAST(:grant AS jsonb)
    AND NOT revocations @> CAST(:taken AS jsonb) AND NOT revocations @> CAST(:all_taken AS jsonb)
ORDER BY run_id
FOR NO KEY UPDATE
""")
_NOTE = text("""
UPDATE agent_run SET revocations = revocations || CAST(:entry AS jsonb)
WHERE run_id = ANY(:run_ids)
""").bindparams(bindparam("run_ids", type_=ARRAY(UUID_TYPE)))


@dataclass(frozen=True)
class StoredAuthorization:
    """What a run's row says of what it may reach.

    Attributes:
        snapshot: As it was frozen; None before the run is prepared.
        revocations: Entries with ``kind``, ``id``, ``reason`` and ``revoked_at``, oldest first.
    """

    snapshot: JsonObject | None
    revocations: list[JsonObject]


class RevocationStore:
    """Revocations of open runs, in the caller's transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._ledger = LedgerStore(connection)

    async def read(self, workspace_id: str, run_id: UUID) -> StoredAuthorization:
        """Return what a run was granted and what was taken back from it.

        Raises:
            RunNotFound: There is no such run in this workspace.
        """
        rows = await self._connection.execute(
            select(agent_run.c.authorization, agent_run.c.revocations).where(
                agent_run.c.run_id == run_id, agent_run.c.workspace_id == workspace_id
            )
        )
        row = rows.one_or_none()
        if row is None:
            raise _not_found(run_id)
        return StoredAuthorization(row.authorization, row.revocations)

    async def revoke(
        self,
        workspace_id: str,
        run_id: UUID,
        kind: RevocationKind,
        resource_id: str | None = None,
        reason: str | None = None,
    ) -> int | None:
        """Take something back from one run.

        A run whose snapshot is not frozen yet may lose anything: the snapshot then comes without it.

        Args:
            workspace_id: Workspace of the caller.
            run_id: The run; its row stays locked until the transaction ends.
            kind: What kind of thing; `run` for everything.
            resource_id: Its id; None for the kind `run` alone.
            reason: Why, at most 1,000 characters; kept with the run and in its ledger.

        Returns:
            The sequence of the ledger row that says so; None where it was taken back before.

        Raises:
            RunNotFound: There is no such run in this workspace.
            RunTerminal: The run has ended, and its grants with it.
            NotGranted: The run's snapshot never held it.
        """
        row = (
            await self._connection.execute(
                _LOCK, {"run_id": run_id, "workspace_id": workspace_id, **_conditions(kind, resource_id)}
            )
        ).one_or_none()
        if row is None:
            raise _not_found(run_id)
        if not row.is_open:
            raise RunTerminal(f"Run {str(run_id)!r} has ended as {row.status!r}; there is nothing to take back.")
        if row.is_taken:
            return None
        if not row.is_granted:
            raise NotGranted(f"Run {str(run_id)!r} was never granted {kind} {resource_id!r}.")
        ((_, sequence),) = await self._take([run_id], kind, resource_id, reason)
        return sequence

    async def _take(
        self, run_ids: Sequence[UUID], kind: RevocationKind, resource_id: str | None, reason: str | None
    ) -> list[tuple[UUID, int]]:
        data: JsonObject = {"kind": kind, "id": resource_id, "reason": reason}
        entry = data | {"revoked_at": datetime.now(UTC).isoformat()}
        await self._connection.execute(_NOTE, {"run_ids": list(run_ids), "entry": dumps([entry])})
        return await self._ledger.append_host_to_all(run_ids, HostEventType.GRANT_REVOKED, data)

    async def revoke_everywhere(
        self, workspace_id: str, kind: GrantKind, resource_id: str, reason: str | None = None
    ) -> list[tuple[UUID, int]]:
        """Take something back from all open runs that hold it; see the function of that name."""
        # First, so that no run is being prepared with it while we look.
        await seize_registries(self._connection, workspace_id)
        holders = await self._connection.scalars(
            _LOCK_HOLDERS, {"workspace_id": workspace_id, **_conditions(kind, resource_id)}
        )
        run_ids: Sequence[UUID] = holders.all()
        return await self._take(run_ids, kind, resource_id, reason) if run_ids else []


async def revoke_everywhere(
    connection: AsyncConnection, workspace_id: str, kind: GrantKind, resource_id: str, reason: str | None = None
) -> list[tuple[UUID, int]]:
    """Take something back from all open runs of a workspace that hold it.

    Call it in the transaction that deletes the thing from its registry, before or after the deletion: runs
    that are being prepared meanwhile are waited for, and those that come later do not find it.

    Args:
        connection: In a transaction.
        workspace_id: The workspace.
        kind: What kind of thing. A knowledge base takes the files of its documents along.
        resource_id: Its id.
        reason: Why, at most 1,000 characters.

    Returns:
        Each run with the sequence of its new ledger row, for the announcement after the commit; in no order.
    """
    return await RevocationStore(connection).revoke_everywhere(workspace_id, kind, resource_id, reason)


def _not_found(run_id: UUID) -> RunNotFound:
    return RunNotFound(f"There is no run {str(run_id)!r} in this workspace.")


def _conditions(kind: RevocationKind, resource_id: str | None) -> dict[str, object]:
    grant: JsonValue = {}
    if kind != "run":
        listed, name = _LISTED[kind]
        grant = {"resources": {listed: [{name: resource_id}]}}
    taken: JsonValue = [{"kind": kind, "id": resource_id}]
    return {"open": _OPEN, "grant": dumps(grant), "taken": dumps(taken), "all_taken": _ALL_TAKEN}
