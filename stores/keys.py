"""API keys: who a caller is and what it may do. Only hashes are stored."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from stores.attempts import hash_token
from stores.identifiers import new_uuid
from stores.tables import api_key

KEY_PREFIX = "rh_"


@dataclass(frozen=True)
class ApiKey:
    """A key without its secret."""

    key_id: UUID
    workspace_id: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


def new_secret() -> str:
    """Return a new key: a prefix that scanners know and 256 random bits."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


class KeyStore:
    """Keys of all workspaces: a key says which one it belongs to."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def register(
        self,
        secret: str,
        *,
        workspace_id: str,
        name: str,
        scopes: Sequence[str],
        expires_at: datetime | None = None,
    ) -> None:
        """Store the hash of a key; one that is known already stays as it is."""
        await self._connection.execute(
            insert(api_key)
            .values(
                key_id=new_uuid(),
                workspace_id=workspace_id,
                name=name,
                key_hash=hash_token(secret),
                scopes=list(scopes),
                expires_at=expires_at,
            )
            .on_conflict_do_nothing(index_elements=[api_key.c.key_hash])
        )

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key behind a secret; None for an unknown, expired or revoked one alike."""
        rows = await self._connection.execute(
            select(api_key).where(
                api_key.c.key_hash == hash_token(secret),
                api_key.c.revoked_at.is_(None),
                or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > func.now()),
            )
        )
        row = rows.mappings().one_or_none()
        return None if row is None else _read(dict(row))

    async def list(self, workspace_id: str | None = None) -> list[ApiKey]:
        """Return the keys of a workspace, or all, the oldest first."""
        query = select(api_key).order_by(api_key.c.key_id)
        if workspace_id is not None:
            query = query.where(api_key.c.workspace_id == workspace_id)
        return [_read(dict(row)) for row in (await self._connection.execute(query)).mappings()]

    async def revoke(self, key_id: UUID) -> bool:
        """End a key at once; False where there is no such key or it has been revoked."""
        revoked = await self._connection.execute(
            update(api_key)
            .where(api_key.c.key_id == key_id, api_key.c.revoked_at.is_(None))
            .values(revoked_at=func.now())
        )
        return revoked.rowcount == 1


def _read(row: dict[str, object]) -> ApiKey:
    del row["key_hash"]
    return ApiKey(**{**row, "scopes": tuple(row["scopes"])})  # type: ignore[arg-type]
