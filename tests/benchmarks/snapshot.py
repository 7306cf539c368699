"""Building the authorization snapshot of a run that is granted a lot."""

import time
from functools import partial

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from activities.resources import ResourceRequest
from runhost.protocol import (
    AgentResources,
    AgentRunnerCapabilities,
    AgentRunnerPermissions,
    JsonObject,
    ResourcePolicy,
)
from stores.catalog import Catalog, CatalogStore
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import alternate, median
from tests.benchmarks.stage import Stage

MODELS, TOOLS, BASES, SKILLS = 200, 200, 50, 50
MAX_MILLISECONDS = 5.0
AT_LEAST = 50

_STOCK = """
WITH model AS (
    INSERT INTO model (workspace_id, model_id, name, base_url, model_name)
    SELECT :workspace, 'model-' || n, 'Model ' || n, 'http://models.test', 'm' FROM generate_series(1, :models) n
), base AS (
    INSERT INTO knowledge_base (workspace_id, kb_id, name, kb_type)
    SELECT :workspace, 'base-' || n, 'Base ' || n, 'postgres' FROM generate_series(1, :bases) n
), skill AS (
    INSERT INTO skill (workspace_id, skill_name, display_name, description, instructions, sha256)
    SELECT :workspace, 'skill-' || n, 'Skill ' || n, repeat('What it is for. ', 10), 'Do it.', ''
    FROM generate_series(1, :skills) n
), server AS (
    INSERT INTO tool_server (workspace_id, server_id, transport, url)
    VALUES (:workspace, 's', 'streamable_http', 'http://tools.test')
    RETURNING workspace_id, server_id
)
INSERT INTO tool (workspace_id, tool_name, server_id, remote_name, description)
SELECT workspace_id, 'tool-' || n, server_id, n, repeat('What it does. ', 10) FROM server, generate_series(1, :tools) n
"""
_BARE = """
SELECT model_id, model_type FROM model WHERE workspace_id = $1 AND model_id = ANY($2)
UNION ALL SELECT tool_name, description FROM tool WHERE workspace_id = $1 AND tool_name = ANY($3)
UNION ALL SELECT kb_id, name FROM knowledge_base WHERE workspace_id = $1 AND kb_id = ANY($4)
UNION ALL SELECT skill_name, description FROM skill WHERE workspace_id = $1
"""


async def measure(stage: Stage) -> list[Line]:
    """Compare looking 500 grants up and building the snapshot with a statement that looks them up alone."""
    workspace = stage.host("snapshot").workspace_id
    counts = {"models": MODELS, "tools": TOOLS, "bases": BASES, "skills": SKILLS}
    async with stage.engine.begin() as connection:
        await connection.execute(text(_STOCK), {"workspace": workspace, **counts})
    sample = partial(_snapshot_milliseconds, stage.engine, workspace)
    baseline = partial(_lookup_milliseconds, stage.pool, workspace)
    await alternate(sample, baseline, seconds=0, at_least=3)
    times, bare = await alternate(sample, baseline, seconds=stage.effort.seconds / 10, at_least=AT_LEAST)
    async with stage.engine.begin() as connection:
        catalog = await CatalogStore(connection, workspace).read(_request().query)
    settings = {
        "grants": sum(counts.values()),
        "samples": len(times),
        "statistic": "p50",
        "baseline_is": "one statement for the same rows, past SQLAlchemy",
    }
    built = median([_build_milliseconds(catalog) for _ in range(AT_LEAST)])
    return [
        Line("snapshot_build", built, "ms", median(bare), Budget(value_at_most=MAX_MILLISECONDS), settings),
        Line("snapshot_with_lookup", median(times), "ms", median(bare), Budget(), settings),
    ]


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}" for number in range(1, count + 1)]


def _request() -> ResourceRequest:
    return ResourceRequest(
        AgentRunnerPermissions(
            models=["invoke", "stream"], tools=["detail", "call"], knowledge_bases=["list", "retrieve"]
        ),
        AgentRunnerCapabilities(tool_calling=True, knowledge_retrieval=True, skill_authoring=True),
        ResourcePolicy(
            allowed_model_uuids=_names("model", MODELS),
            allowed_tool_names=_names("tool", TOOLS),
            allowed_kb_uuids=_names("base", BASES),
        ),
        {},
        [],
    )


async def _snapshot_milliseconds(engine: AsyncEngine, workspace: str) -> float:
    async with engine.begin() as connection:
        began = time.monotonic()
        request = _request()
        _must_be_whole(request.build(await CatalogStore(connection, workspace).read(request.query)))
        return (time.monotonic() - began) * 1000


def _build_milliseconds(catalog: Catalog) -> float:
    began = time.monotonic()
    _must_be_whole(_request().build(catalog))
    return (time.monotonic() - began) * 1000


async def _lookup_milliseconds(pool: asyncpg.Pool, workspace: str) -> float:
    async with pool.acquire() as connection:
        names = (_names("model", MODELS), _names("tool", TOOLS), _names("base", BASES))
        began = time.monotonic()
        await connection.fetch(_BARE, workspace, *names)
        return (time.monotonic() - began) * 1000


def _must_be_whole(document: JsonObject) -> None:
    """Read what was built, as it goes into the context, and see that nothing is missing."""
    resources = AgentResources.model_validate(document)
    # With the skills comes the tool that activates them.
    assert (len(resources.models), len(resources.tools)) == (MODELS, TOOLS + 1)
