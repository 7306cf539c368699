"""Revisions go up, down and up again, and end where the tables say."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import create_async_engine

from runhost.cli.migrate import downgrade, upgrade
from stores import knowledge_tables, resource_tables, storage_tables, tables, usage_tables
from stores.columns import metadata

# Importing them fills the metadata.
TABLE_MODULES = (tables, knowledge_tables, resource_tables, storage_tables, usage_tables)

Answer = TypeVar("Answer")


async def ask(url: str, question: Callable[[Connection], Answer]) -> Answer:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        answer = await connection.run_sync(question)
    await engine.dispose()
    return answer


def table_names(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


def drift(connection: Connection) -> list[object]:
    def is_ours(_object: object, name: str | None, kind: str, *_: object) -> bool:
        return kind != "table" or not (name or "").startswith((f"{tables.agent_run_event.name}_", "alembic_"))

    context = MigrationContext.configure(connection, opts={"include_object": is_ours, "compare_server_default": True})
    return list(compare_metadata(context, metadata))


async def test_upgrade_downgrade_upgrade_works(empty_database_url: str) -> None:
    await asyncio.to_thread(upgrade, empty_database_url)
    await asyncio.to_thread(downgrade, empty_database_url, "base")
    assert await ask(empty_database_url, table_names) <= {"alembic_version"}
    await asyncio.to_thread(upgrade, empty_database_url)
    assert set(metadata.tables) <= await ask(empty_database_url, table_names)


async def test_migrated_database_matches_the_metadata(database_url: str) -> None:
    assert await ask(database_url, drift) == []


async def test_partitions_reach_into_the_coming_months(database_url: str) -> None:
    names = await ask(database_url, table_names)
    assert len([name for name in names if name.startswith("agent_run_event_2")]) == 4
