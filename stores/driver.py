"""Connections past SQLAlchemy, for what happens thousands of times a second: commits and their announcements."""

import asyncpg
from sqlalchemy.engine import make_url

from stores.engine import server_settings


def driver_dsn(database_url: str) -> str:
    """Return a ``postgresql+asyncpg://`` URL as the driver takes it."""
    return make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)


def driver_pool(database_url: str, *, size: int, application_name: str) -> asyncpg.Pool:
    """Return a pool that connects when it is first used; enter it as a context.

    A connection that died with the server is replaced by the next use, which meets the error once.
    """
    return asyncpg.create_pool(
        driver_dsn(database_url),
        min_size=0,
        max_size=size,
        # Its users leave nothing on a connection that would have to be reset; asking costs a round trip.
        reset=_nothing_to_reset,
        timeout=5,
        server_settings=server_settings(application_name),
    )


async def _nothing_to_reset(_connection: object) -> None:
    return None
