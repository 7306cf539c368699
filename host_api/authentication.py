"""From a run token to the session of its attempt (H-A1, H-A2, D-20)."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable
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
SELECT a.token_hash, a.run_id, a.attempt, r.workspace_id, r.runner_id, r.deadline_at, r.revocations::text AS revocations
FROM agent_run_attempt a
JOIN agent_run r ON r.run_id = a.run_id AND r.current_attempt = a.attempt
WHERE a.token_hash = ANY($1) AND r.attempt_outcome IS NULL AND r.status IN ('running', 'waiting')
"""
_SNAPSHOT = 'SELECT "authorization"::text FROM agent_run WHERE run_id = $1'

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

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
    """Reads the session of a call anew, so that an ended attempt and a revoked grant count from the next call.

    Parsed snapshots are remembered, which are frozen. A session is, for half a second, for calls whose statements
    check the fence themselves: for these a revocation counts within that time (D-15 allows a second).
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._lookups = _TokenLookups(pool)
        self._snapshots: OrderedDict[UUID, Authorization] = OrderedDict()
        self._effective: OrderedDict[tuple[UUID, str], Authorization] = OrderedDict()
        # By hash of the token: the session, and the monotonic second before it was read.
        self._recent: OrderedDict[bytes, tuple[RunSession, float]] = OrderedDict()

    async def find(self, token: str, *, max_age_seconds: float = 0.0) -> RunSession | None:
        """Return the session that a token opens, None where it opens none.

        Args:
            token: What the caller shows.
            max_age_seconds: How old the answer may be, for a call whose own statement checks the fence.
        """
        token_hash, now = hash_token(token), time.monotonic()
        known = self._recent.get(token_hash)
        if known is not None and now - known[1] < max_age_seconds:
            return known[0]
        row = await self._lookups.find(token_hash)
        if row is None:
            self._recent.pop(token_hash, None)
            return None
        run_id: UUID = row["run_id"]
        session = RunSession(
            run_id=run_id,
            attempt=row["attempt"],
            workspace_id=row["workspace_id"],
            runner_id=row["runner_id"],
            deadline_at=row["deadline_at"],
            authorization=await self._authorization(run_id, row["revocations"]),
        )
        _remember(self._recent, token_hash, (session, now))
        return session

    async def _authorization(self, run_id: UUID, revocations: str) -> Authorization:
        if revocations == "[]":
            return await self._snapshot(run_id)
        known = self._effective.get((run_id, revocations))
        if known is None:
            taken = _revocations.validate_python(loads(revocations))
            known = (await self._snapshot(run_id)).without(taken)
            _remember(self._effective, (run_id, revocations), known)
        return known

    async def _snapshot(self, run_id: UUID) -> Authorization:
        snapshot = self._snapshots.get(run_id)
        if snapshot is None:
            snapshot = Authorization.model_validate(loads(await self._pool.fetchval(_SNAPSHOT, run_id)))
            _remember(self._snapshots, run_id, snapshot)
        return snapshot


class _TokenLookups:
    """Looks tokens up, those that come while a statement is under way together with the next one.

    So a lookup never began before its call came, and at many calls at once it costs nearly nothing.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._waiting: list[tuple[bytes, asyncio.Future[asyncpg.Record | None]]] = []
        self._work: asyncio.Task[None] | None = None

    async def find(self, token_hash: bytes) -> asyncpg.Record | None:
        """Return the row of a token, None where there is none."""
        found = asyncio.get_running_loop().create_future()
        self._waiting.append((token_hash, found))
        if self._work is None:
            self._work = asyncio.create_task(self._look_up(), name="token-lookups")
        return await found

    async def _look_up(self) -> None:
        try:
            async with self._pool.acquire() as connection:
                while self._waiting:
                    waiting, self._waiting = self._waiting, []
                    await _answer(waiting, connection.fetch(_SESSION, [token_hash for token_hash, _ in waiting]))
                # Before the connection is given back, which takes a turn of the loop: who comes in it must see
                # that nobody looks any more.
                self._work = None
        except Exception as error:  # noqa: BLE001 - no connection, or a broken one: whoever waits is told
            self._work = None
            waiting, self._waiting = self._waiting, []
            _refuse(waiting, error)


async def _answer(
    waiting: list[tuple[bytes, asyncio.Future[asyncpg.Record | None]]], query: Awaitable[list[asyncpg.Record]]
) -> None:
    try:
        rows = {row["token_hash"]: row for row in await query}
    except BaseException as error:
        _refuse(waiting, error)
        raise
    for token_hash, found in waiting:
        if not found.done():
            found.set_result(rows.get(token_hash))


def _refuse(waiting: list[tuple[bytes, asyncio.Future[asyncpg.Record | None]]], error: BaseException) -> None:
    for _, found in waiting:
        if not found.done():
            found.set_exception(error)


def belongs(session: RunSession, credentials: Credentials) -> bool:
    """Say whether what the caller claims to be is what its token says (H-A2)."""
    return (
        credentials.run_id == str(session.run_id)
        and credentials.plugin_identity == session.authorization.plugin_identity
    )


def _remember(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    kept[key] = value
    if len(kept) > MAX_REMEMBERED:
        kept.popitem(last=False)
