"""Health check of a worker container: exits 0 when the worker of this container has spoken to the database lately.

A worker serves no port. It announces its runners every minute from the loop that does everything else, over
connections that carry its name, and Postgres knows from which address they come and when they last did something.
"""

import asyncio
import os
import sys

import asyncpg

TIMEOUT_SECONDS = 8.0
# The announcement comes every 60 s; one may be late.
SILENT_AFTER_SECONDS = 150.0

_SPOKE = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE application_name = 'runhost worker' AND datname = current_database()
        AND client_addr IS NOT DISTINCT FROM inet_client_addr()
        AND state_change > now() - make_interval(secs => $1)
)
"""


async def has_spoken(database_url: str, within_seconds: float = SILENT_AFTER_SECONDS) -> bool:
    """Say whether a worker at this machine's address has used its connections within the last seconds."""
    dsn = database_url.replace("postgresql+asyncpg://", "postgresql://", 1)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            connection = await asyncpg.connect(dsn)
            try:
                return bool(await connection.fetchval(_SPOKE, within_seconds))
            finally:
                await connection.close()
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False


if __name__ == "__main__":
    sys.exit(not asyncio.run(has_spoken(os.environ["RUNHOST_DATABASE_URL"])))
