"""From a run token to the session of its attempt (H-A1, H-A2, D-20)."""

from collections import OrderedDict
from typing import TypeVar
from uuid import UUID

import asyncpg
from pydantic import TypeAdapter

from host_api.authorization import Authorization, Revocation
from host_api.errors import HostCallError
from host_api.session import Credentials, RunSession
from runhost.protocol import ErrorCode
from stores.attempts import hash_token
from stores.jsonb import loads

MAX_REMEMBERED = 1_000
"""Snapshots kept in parsed form; they never change, so there is nothing to keep fresh."""

# A token is alive while its attempt is the run's current one and has not ended: the same words as the fence of a
# commit, so that a call can do no more than a result.
_SESSION = """
SELECT a.run_id, a.attempt, r.workspace_id, r.runner_id, r.deadline_at, r.revocations::text AS revocations
FROM agent_run_attempt a
JOIN agent_run r ON r.run_id = a.run_id AND r.current_attempt = a.attempt
WHERE a.token_hash = $1 AND r.attempt_outcome IS NULL AND r.status IN ('running', 'waiting')
"""
_SNAPSHOT = 'SELECT "authorization"::text FROM agent_run WHERE run_id = $1'

_Key = TypeVar("_Key")

_revocations = TypeAdapter(list[Revocation])


class CredentialsRefused(HostCallError):
    """The one answer to all credentials that do not hold.

    An unknown token, that of an ended run or an older attempt, another run's, and a wrong identity read the
    same: nobody learns which of them it was.
    """

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.UNAUTHORIZED,
            "The run token, the run id and the plugin identity do not belong to an attempt that is running.",
        )


class Authenticator:
    """Reads the session of every call anew, so that an ended attempt and a revoked grant count from the next call.

    Only the parsed snapshots are remembered, which are frozen.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._snapshots: OrderedDict[UUID, Authorization] = OrderedDict()
        self._effective: OrderedDict[tuple[UUID, str], Authorization] = OrderedDict()

    async def find(self, token: str) -> RunSession | None:
        """Return the session that a token opens, None where it opens none."""
        row = await self._pool.fetchrow(_SESSION, hash_token(token))
        if row is None:
            return None
        run_id: UUID = row["run_id"]
        return RunSession(
            run_id=run_id,
            attempt=row["attempt"],
            workspace_id=row["workspace_id"],
            runner_id=row["runner_id"],
            deadline_at=row["deadline_at"],
            authorization=await self._authorization(run_id, row["revocations"]),
        )

    async def _authorization(self, run_id: UUID, revocations: str) -> Authorization:
        if revocations == "[]":
            return await self._snapshot(run_id)
        known = self._effective.get((run_id, revocations))
        if known is None:
            taken = _revocations.validate_json(revocations)
            known = (await self._snapshot(run_id)).without(taken)
            _remember(self._effective, (run_id, revocations), known)
        return known

    async def _snapshot(self, run_id: UUID) -> Authorization:
        snapshot = self._snapshots.get(run_id)
        if snapshot is None:
            snapshot = Authorization.model_validate(loads(await self._pool.fetchval(_SNAPSHOT, run_id)))
            _remember(self._snapshots, run_id, snapshot)
        return snapshot


def belongs(session: RunSession, credentials: Credentials) -> bool:
    """Say whether what the caller claims to be is what its token says (H-A2)."""
    return (
        credentials.run_id == str(session.run_id)
        and credentials.plugin_identity == session.authorization.plugin_identity
    )


def _remember(kept: OrderedDict[_Key, Authorization], key: _Key, value: Authorization) -> None:
    kept[key] = value
    if len(kept) > MAX_REMEMBERED:
        kept.popitem(last=False)
