"""The connection pool. Built once per process by an entry point and handed down."""

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from stores.jsonb import dumps, loads

# Below every start-to-close timeout of a local activity: a statement that hangs must end before Temporal
# gives the activity up, or its outcome would be unknown (TEMPORAL 15, pitfall 3).
STATEMENT_TIMEOUT_SECONDS = 10


def build_engine(
    database_url: str, *, pool_size: int, application_name: str, check_connections: bool = False
) -> AsyncEngine:
    """Return an engine for ``postgresql+asyncpg://`` URLs; it opens no connection yet.

    Args:
        database_url: Where the facts live.
        pool_size: Connections kept at most. The wheel's server allows 100 in all, so count processes.
        application_name: What `pg_stat_activity` shows for these connections.
        check_connections: Test a connection before each use, one round trip, so that a restart of the server
            costs a caller no error. Where errors are retried anyway, they are cheaper than the test.
    """
    return create_async_engine(
        database_url,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=check_connections,
        # An error must not carry what a user wrote into a log (INV-9).
        hide_parameters=True,
        json_serializer=dumps,
        json_deserializer=loads,
        connect_args={"server_settings": server_settings(application_name), "timeout": 5},
    )


def server_settings(application_name: str) -> dict[str, str]:
    """Return what every connection sets for itself."""
    return {
        "application_name": application_name,
        "statement_timeout": str(STATEMENT_TIMEOUT_SECONDS * 1000),
        # Plans of short statements gain nothing from compilation and pay for it.
        "jit": "off",
    }
