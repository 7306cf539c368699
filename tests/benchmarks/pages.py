"""Reading a page of a large ledger."""

import random
import time
from functools import partial
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from stores.engine import build_engine
from stores.identifiers import new_uuid
from stores.ledger import LedgerStore
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import alternate, percentile
from tests.benchmarks.stage import Stage

PAGE = 50
ROWS_PER_RUN = 1_000
RUNS_PER_INSERT = 100
MAX_MILLISECONDS = 10.0
MAX_RATIO = 2.0

_FILL = text("""
INSERT INTO agent_run_event (run_id, sequence, workspace_id, attempt, source, source_sequence, type, data)
SELECT run_id, n, 'bench', 1, 'runner', n, 'message.delta',
    jsonb_build_object('chunk', jsonb_build_object('role', 'assistant', 'content', 'word ' || n))
FROM unnest(CAST(:run_ids AS uuid[])) AS run_id, generate_series(1, CAST(:rows AS bigint)) AS n
""")


async def measure(stage: Stage) -> list[Line]:
    """Compare pages at random places of two ledgers, in databases of their own."""
    effort = stage.effort
    few = build_engine(await stage.servers.make_database("few"), pool_size=1, application_name="runhost bench")
    many = build_engine(await stage.servers.make_database("many"), pool_size=1, application_name="runhost bench")
    try:
        few_runs = await _fill(few, effort.few_rows)
        stage.say(f"writing {effort.rows:,} ledger rows")
        many_runs = await _fill(many, effort.rows)
        baseline = partial(_page_milliseconds, few, few_runs)
        pages, few_pages = await alternate(
            partial(_page_milliseconds, many, many_runs),
            baseline,
            seconds=effort.seconds / 2,
            at_least=effort.pages,
        )
    finally:
        await few.dispose()
        await many.dispose()
    settings = {
        "rows": effort.rows,
        "baseline_rows": effort.few_rows,
        "rows_per_run": ROWS_PER_RUN,
        "page": PAGE,
        "samples": len(pages),
        "statistic": "p95",
    }
    budget = Budget(value_at_most=MAX_MILLISECONDS, ratio_at_most=MAX_RATIO)
    return [Line("pages", percentile(pages, 95), "ms", percentile(few_pages, 95), budget, settings)]


async def _fill(engine: AsyncEngine, rows: int) -> list[UUID]:
    """Write a ledger of so many rows and return its runs."""
    run_ids = [new_uuid() for _ in range(max(1, rows // ROWS_PER_RUN))]
    for start in range(0, len(run_ids), RUNS_PER_INSERT):
        # Each within the statement timeout of the engine.
        part = {"run_ids": run_ids[start : start + RUNS_PER_INSERT], "rows": min(rows, ROWS_PER_RUN)}
        async with engine.begin() as connection:
            await connection.execute(_FILL, part)
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.execute(text("SET statement_timeout = 0"))
        await autocommit.execute(text("VACUUM ANALYZE agent_run_event"))
    return run_ids


async def _page_milliseconds(engine: AsyncEngine, run_ids: list[UUID]) -> float:
    run_id, after = random.choice(run_ids), random.randrange(ROWS_PER_RUN - PAGE)
    began = time.monotonic()
    async with engine.connect() as connection:
        await LedgerStore(connection).page(run_id, after=after, limit=PAGE)
    return (time.monotonic() - began) * 1000
