"""Random secrets that all processes of one host share, made on first use."""

import secrets

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from stores.tables import host_secret

CURSORS = "cursors"


async def shared_secret(connection: AsyncConnection, name: str) -> bytes:
    """Return the 32 bytes kept under ``name``; every caller of this database gets the same."""
    await connection.execute(
        insert(host_secret).values(name=name, value=secrets.token_bytes(32)).on_conflict_do_nothing()
    )
    return (await connection.scalars(select(host_secret.c.value).where(host_secret.c.name == name))).one()
