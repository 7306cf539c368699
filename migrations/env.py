"""Runs the revisions against the database that the caller names (`runhost migrate`)."""

import asyncio
from datetime import UTC, datetime

from alembic import context
from sqlalchemy import Connection, inspect, pool
from sqlalchemy.ext.asyncio import create_async_engine

from stores import knowledge_tables, resource_tables, storage_tables, tables, usage_tables
from stores.columns import metadata
from stores.partitions import ensure_partitions

# Importing them fills the metadata.
TABLE_MODULES = (tables, knowledge_tables, resource_tables, storage_tables, usage_tables)

PARTITION_PREFIX = f"{tables.agent_run_event.name}_"


def include_object(_object: object, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
    """Leave partitions out of comparisons: they come and go with time."""
    return not (kind == "table" and (name or "").startswith(PARTITION_PREFIX))


def run(connection: Connection) -> None:
    """Run the revisions, each in a transaction of its own."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=include_object,
        compare_server_default=True,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


async def run_async(url: str) -> None:
    """Connect, run, and make the ledger's partitions, which no revision can know."""
    engine = create_async_engine(url, poolclass=pool.NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(run)
        if await connection.run_sync(lambda sync: inspect(sync).has_table(tables.agent_run_event.name)):
            await ensure_partitions(connection, datetime.now(UTC))
        await connection.commit()
    await engine.dispose()


url = context.config.get_main_option("sqlalchemy.url")
if url is None:
    raise SystemExit("No database: set RUNHOST_DATABASE_URL or run `runhost migrate`.")
asyncio.run(run_async(url))
