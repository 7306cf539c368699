"""How fast one attempt's results become committed rows."""

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import asyncpg

from stores.identifiers import new_uuid
from stores.jsonb import dumps
from stores.notifications import LedgerAnnouncer
from tests.benchmarks.hosts import BenchHost, words
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import alternate, median
from tests.benchmarks.stage import Stage

# One insert a commit is so much slower that fewer of them take as long.
ROWS_PER_SINGLE = 16
BATCH = 64
MIN_RATIO = 0.5
MIN_RATIO_TO_SINGLE = 10.0

_TABLE = "bench_ledger"
_COLUMNS = "(run_id, sequence, workspace_id, attempt, source, source_sequence, type, data)"
_BATCHED = f"""
INSERT INTO {_TABLE} {_COLUMNS}
SELECT $1, r.sequence, $2, 1, 'runner', r.sequence, r.type, r.data::jsonb
FROM unnest($3::bigint[], $4::text[], $5::text[]) AS r(sequence, type, data)
"""  # noqa: S608
_SINGLE = f"INSERT INTO {_TABLE} {_COLUMNS} VALUES ($1, $3, $2, 1, 'runner', $3, $4, $5::jsonb)"  # noqa: S608


async def measure(stage: Stage) -> list[Line]:
    """Compare the journal, validation included, with inserts that check nothing and cause nothing."""
    host = stage.host("journal")
    await host.put_agent(script=[])
    rows, rounds, seconds = stage.effort.journal_rows, stage.effort.rounds, stage.effort.seconds
    async with LedgerAnnouncer(stage.announcer_pool) as announcer, _plain_table(stage.dsn) as connection:
        journal = partial(_journal_rate, host, stage.pool, announcer, rows)
        batched = partial(_batched_rate, connection, rows)
        single = partial(_single_rate, connection, rows // ROWS_PER_SINGLE)
        await alternate(journal, batched, seconds=0, at_least=1)
        rates, batched_rates = await alternate(journal, batched, seconds=seconds, at_least=rounds)
        again, single_rates = await alternate(journal, single, seconds=seconds / 2, at_least=rounds)
    settings = {"attempts": 1, "rows_per_round": rows}
    to_batched = {**settings, "rounds": len(rates), "baseline_is": f"unnest, {BATCH} rows a commit, plain table"}
    to_single = {**settings, "rounds": len(again), "baseline_is": "one insert a commit, plain table"}
    return [
        Line("journal", median(rates), "rows/s", median(batched_rates), Budget(ratio_at_least=MIN_RATIO), to_batched),
        Line(
            "journal_single",
            median(again),
            "rows/s",
            median(single_rates),
            Budget(ratio_at_least=MIN_RATIO_TO_SINGLE),
            to_single,
        ),
    ]


@asynccontextmanager
async def _plain_table(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Make a table with the ledger's columns and primary key, and nothing else of it."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")
        await connection.execute(
            f"CREATE TABLE {_TABLE} (LIKE agent_run_event INCLUDING DEFAULTS, PRIMARY KEY (run_id, sequence))"
        )
        yield connection
        await connection.execute(f"DROP TABLE {_TABLE}")
    finally:
        await connection.close()


async def _journal_rate(host: BenchHost, pool: asyncpg.Pool, announcer: LedgerAnnouncer, rows: int) -> float:
    run_id, journal = await host.open_journal(pool, announcer)
    results = words(run_id, rows)
    began = time.monotonic()
    for result in results:
        await journal.add(result)
    await journal.close(None)
    return len(results) / (time.monotonic() - began)


async def _batched_rate(connection: asyncpg.Connection, rows: int) -> float:
    run_id, texts = _prepared(rows)
    types = ["message.delta"] * BATCH
    began = time.monotonic()
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        sequences = list(range(start + 1, start + len(batch) + 1))
        await connection.execute(_BATCHED, run_id, "bench", sequences, types[: len(batch)], batch)
    return len(texts) / (time.monotonic() - began)


async def _single_rate(connection: asyncpg.Connection, rows: int) -> float:
    run_id, texts = _prepared(rows)
    began = time.monotonic()
    for sequence, text in enumerate(texts, start=1):
        await connection.execute(_SINGLE, run_id, "bench", sequence, "message.delta", text)
    return len(texts) / (time.monotonic() - began)


def _prepared(count: int) -> tuple[uuid.UUID, list[str]]:
    return new_uuid(), [dumps(result["data"]) for result in words("", count)]
