"""Calls of the host API, through the gate with its checks and its audit, beside their bare statements."""

import hashlib
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from host_api.audit import AccessAudit
from host_api.definition import Call
from host_api.gate import HostApi
from host_api.limits import CallLimits
from host_api.methods import ALL_METHODS
from host_api.services import HostServices
from host_api.session import Credentials, RunSession
from runhost.protocol import JsonObject
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.cursors import CursorSigner, transcript_query
from stores.runs import RunStore
from tests.benchmarks.hosts import BenchHost
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.sampling import alternate, median, percentile
from tests.benchmarks.stage import Stage
from tests.fixtures.grants import everything

PAGE = 50
ARTIFACT_BYTES = 1024 * 1024
CALLS_PER_ROUND = 50
# Authorization and audit together may cost what the statement itself does.
MAX_GATE_RATIO = 1.0
NO_BUDGET = Budget()
DEFINITIONS = {method.name: method for method in ALL_METHODS}
UNLIMITED = CallLimits(calls_per_second=1e9, burst=1_000_000_000)
ITEMS_PER_INSERT = 5_000

_FILL = """
INSERT INTO transcript (transcript_id, workspace_id, bot_id, conversation_id, event_id, role, content, content_json)
SELECT gen_random_uuid(), $1, $2, $3, 'bench', 'user', 'What is said in message ' || n || ' of a long conversation.',
    jsonb_build_object('role', 'user', 'content', 'What is said in message ' || n || ' of a long conversation.')
FROM generate_series(1, $4::bigint) n
"""
_ARTIFACT = """
WITH blob AS (INSERT INTO artifact_blob (workspace_id, sha256, content) VALUES ($1, $2, $3))
INSERT INTO artifact (workspace_id, artifact_id, artifact_type, size_bytes, sha256, source, storage_type, run_id)
VALUES ($1, 'bench', 'file', $4, $2, 'runner', 'blob', $5)
"""
_BARE_STATE = "SELECT value FROM runner_state WHERE scope_key = $1 AND state_key = 'bench'"
_BARE_PAGE = """
SELECT seq, transcript_id, event_id, conversation_id, thread_id, role, item_type, content, content_json, run_id,
    sequence, metadata, created_at
FROM transcript
WHERE workspace_id = $1 AND conversation_id = $2 AND thread_id IS NULL AND bot_id = $3 AND seq < $4
ORDER BY seq DESC
LIMIT $5
"""
_BARE_CONTENT = """
SELECT substring(b.content FROM 1 FOR $2)
FROM artifact a JOIN artifact_blob b ON b.workspace_id = a.workspace_id AND b.sha256 = a.sha256
WHERE a.workspace_id = $1 AND a.artifact_id = 'bench'
"""


@dataclass
class Meter:
    """Does one thing over and over, one at a time, and keeps how long each took."""

    one: Callable[[], Awaitable[Any]]
    milliseconds: list[float] = field(default_factory=list[float])

    async def round(self) -> float:
        """Do it some times; returns how many a second got done."""
        began = time.perf_counter()
        for _ in range(CALLS_PER_ROUND):
            before = time.perf_counter()
            await self.one()
            self.milliseconds.append((time.perf_counter() - before) * 1000)
        return CALLS_PER_ROUND / (time.perf_counter() - began)


@dataclass(frozen=True)
class Caller:
    """A run that may do everything, and the gate that its calls pass."""

    api: HostApi
    pool: asyncpg.Pool
    cursors: CursorSigner
    opened: OpenAttempt
    credentials: Credentials
    session: RunSession
    scope_key: str

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Call a method."""
        return await self.api.call(self.credentials, method, params)

    async def run_alone(self, method: str, params: JsonObject) -> JsonObject:
        """Do what a method does, without the gate before it."""
        definition = DEFINITIONS[method]
        answer = await definition.run(
            Call(self.session, self.api.services), definition.wire.params.model_validate(params)
        )
        return answer.model_dump(mode="json")


async def measure(stage: Stage) -> list[Line]:
    """Compare three methods with the one statement that each of them is about."""
    items = stage.effort.few_rows
    async with AccessAudit(stage.pool) as audit:
        caller = await _open(stage, audit)
        await caller.call("state_set", {"scope": "conversation", "key": "bench", "value": {"turns": 17, "notes": "x"}})
        stage.say(f"writing {items:,} transcript items")
        await _fill(caller, items)
        lines = await _compare(stage, caller, "state_get", *_state(caller))
        lines += await _compare(stage, caller, "history_page", *await _history(caller), items=items, page=PAGE)
        lines += await _compare(stage, caller, "artifact_read", *_content(caller), bytes=ARTIFACT_BYTES)
    return lines


async def _compare(
    stage: Stage,
    caller: Caller,
    name: str,
    params: Callable[[], JsonObject],
    bare: Callable[[], Awaitable[Any]],
    **settings: int,
) -> list[Line]:
    """Take a call, its method without the gate, and the bare statement in turns."""

    async def called() -> None:
        await caller.call(name, params())

    async def ungated() -> None:
        await caller.run_alone(name, params())

    meters = [Meter(called), Meter(ungated), Meter(bare)]

    async def others() -> float:
        await meters[1].round()
        return await meters[2].round()

    await alternate(meters[0].round, others, seconds=0, at_least=1)
    for meter in meters:
        meter.milliseconds.clear()
    rates, bare_rates = await alternate(
        meters[0].round, others, seconds=stage.effort.seconds / 2, at_least=stage.effort.rounds
    )
    p50, p95 = ([percentile(meter.milliseconds, percent) for meter in meters] for percent in (50, 95))
    shared = {**settings, "calls": len(meters[0].milliseconds), "baseline_is": "the statement alone, past SQLAlchemy"}
    return [
        Line(f"host_{name}", median(rates), "calls/s", median(bare_rates), NO_BUDGET, shared),
        Line(f"host_{name}_p95", p95[0], "ms", p95[2], NO_BUDGET, {**shared, "statistic": "p95"}),
        Line(
            f"host_{name}_gate",
            p50[0] - p50[1],
            "ms",
            p50[2],
            Budget(ratio_at_most=MAX_GATE_RATIO),
            {**shared, "statistic": "p50", "value_is": "a call less its method alone: authorization and audit"},
        ),
    ]


async def _open(stage: Stage, audit: AccessAudit) -> Caller:
    """Accept a message, open an attempt of its run without Temporal, and grant it everything."""
    host: BenchHost = stage.host("host")
    await host.put_agent(script=[])
    run_id = UUID((await host.accept_message()).run_id)
    async with stage.engine.begin() as connection:
        row = await RunStore(connection).load(run_id)
        authorization = everything(row, row.envelope)
        await RunStore(connection).freeze(
            run_id, authorization=authorization.model_dump(mode="json"), context={}, deadline_at=None
        )
        opened = await AttemptStore(connection).open(run_id, ActivityExecution(secrets.token_hex(8), "1", 1, "bench"))
    assert isinstance(opened, OpenAttempt)
    cursors = CursorSigner(secrets.token_bytes(32))
    services = HostServices(stage.engine, stage.pool, cursors, host_version="bench")
    credentials = Credentials(opened.token, str(run_id), authorization.plugin_identity)
    scope_key = authorization.state_context.scope_keys["conversation"]
    api = HostApi(services, audit, limits=UNLIMITED)
    session = RunSession(
        run_id=run_id,
        attempt=opened.attempt,
        workspace_id=opened.run.workspace_id,
        runner_id=opened.run.runner_id,
        deadline_at=None,
        authorization=authorization,
    )
    return Caller(api, stage.pool, cursors, opened, credentials, session, scope_key)


async def _fill(caller: Caller, items: int) -> None:
    run = caller.opened.run
    for start in range(0, items, ITEMS_PER_INSERT):
        # Each within the statement timeout of the pool.
        count = min(ITEMS_PER_INSERT, items - start)
        await caller.pool.execute(_FILL, run.workspace_id, run.bot_id, run.conversation_id, count)
    content = random.randbytes(ARTIFACT_BYTES)
    digest = hashlib.sha256(content).hexdigest()
    await caller.pool.execute(_ARTIFACT, run.workspace_id, digest, content, len(content), run.run_id)
    async with caller.pool.acquire() as connection:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("VACUUM ANALYZE transcript")
        await connection.execute("RESET statement_timeout")


Params = Callable[[], JsonObject]
Bare = Callable[[], Awaitable[Any]]


def _state(caller: Caller) -> tuple[Params, Bare]:
    return (
        lambda: {"scope": "conversation", "key": "bench"},
        lambda: caller.pool.fetchval(_BARE_STATE, caller.scope_key),
    )


async def _history(caller: Caller) -> tuple[Params, Bare]:
    run = caller.opened.run
    first, last = await caller.pool.fetchrow(
        "SELECT min(seq), max(seq) FROM transcript WHERE workspace_id = $1", run.workspace_id
    )
    query = transcript_query(run.workspace_id, run.conversation_id or "", run.bot_id, run.thread_id)

    def params() -> JsonObject:
        return {"before_cursor": caller.cursors.sign(query, random.randrange(first + PAGE, last)), "limit": PAGE}

    async def bare() -> None:
        before = random.randrange(first + PAGE, last)
        rows = await caller.pool.fetch(_BARE_PAGE, run.workspace_id, run.conversation_id, run.bot_id, before, PAGE + 1)
        assert len(rows) >= PAGE

    page: Any = await caller.call("history_page", params())
    assert len(page["items"]) == PAGE
    return params, bare


def _content(caller: Caller) -> tuple[Params, Bare]:
    workspace_id = caller.opened.run.workspace_id

    async def bare() -> None:
        assert len(await caller.pool.fetchval(_BARE_CONTENT, workspace_id, ARTIFACT_BYTES)) == ARTIFACT_BYTES

    return lambda: {"artifact_id": "bench"}, bare
