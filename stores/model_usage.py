"""Tokens of the model calls that the host makes for runs: one row each, summed by whoever reads (D-32).

The journal writes the totals of what a runner reports from its memory, in the worker; calls are counted wherever the
host API runs, while the journal commits. A total of both in one place would be overwritten, so each has its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import asyncpg
from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from runhost.protocol import Usage
from stores.escaping import escape
from stores.fence import OPEN_ATTEMPT, Fence, stale
from stores.jsonb import dumps
from stores.tables import agent_run, agent_run_attempt
from stores.usage_tables import model_usage

_RECORD = f"""
WITH {OPEN_ATTEMPT}
INSERT INTO model_usage (run_id, attempt, workspace_id, model_id, usage)
SELECT run_id, $2, workspace_id, $3, $4::jsonb FROM fence
RETURNING true
"""  # noqa: S608 - constants only


class ModelUsageStore:
    """Writes what model calls have used, each in one statement of its own."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def record(self, fence: Fence, model_id: str, usage: Usage) -> None:
        """Note the usage of a call that the host has made.

        Raises:
            StaleAttempt: The fence has passed; nothing is written.
        """
        counts = usage.model_dump(mode="json", exclude_none=True)
        written = await self._pool.fetchval(_RECORD, fence.run_id, fence.attempt, escape(model_id), dumps(counts))
        if written is None:
            raise stale()


def _counted() -> ScalarSelect[Any]:
    """Select the usages of an attempt's model calls, an array; null where the host has made none."""
    return (
        select(func.jsonb_agg(aggregate_order_by(model_usage.c.usage, model_usage.c.usage_id), type_=JSONB))
        .where(model_usage.c.run_id == agent_run_attempt.c.run_id, model_usage.c.attempt == agent_run_attempt.c.attempt)
        .correlate(agent_run_attempt)
        .scalar_subquery()
    )


ATTEMPT_COUNTED = _counted().label("counted")
"""Column of a query of attempts, for `attempt_usage`."""

_PARTS = func.jsonb_build_object("reported", agent_run_attempt.c.usage, "counted", _counted())

RUN_COUNTED = (
    select(func.jsonb_agg(_PARTS, type_=JSONB))
    .where(
        agent_run_attempt.c.run_id == agent_run.c.run_id,
        select(model_usage.c.usage_id).where(model_usage.c.run_id == agent_run.c.run_id).exists(),
    )
    .correlate(agent_run)
    .scalar_subquery()
    .label("counted")
)
"""Column of a query of runs, for `run_usage`; null where the host has made no call for the run."""


def attempt_usage(reported: Mapping[str, Any] | None, counted: Iterable[Mapping[str, Any]] | None) -> Usage | None:
    """Return what an attempt has used, None where nobody knows.

    Args:
        reported: The sum of what its results say.
        counted: What its calls through the host have used.

    Returns:
        The larger of the two: a result reports the tokens that led to it, and the calls are among those. A runner
        that reports nothing, or less than the host has counted, is charged with the count.
    """
    said = None if reported is None else Usage.model_validate(reported)
    if not counted:
        return said
    count = Usage.sum(Usage.model_validate(usage) for usage in counted)
    return said if said is not None and (said.total_tokens or 0) >= (count.total_tokens or 0) else count


def run_usage(reported: Mapping[str, Any] | None, attempts: Iterable[Mapping[str, Any]] | None) -> Usage | None:
    """Return what a run has used: the sum of its attempts.

    Args:
        reported: The sum of what all results say; enough where ``attempts`` is None.
        attempts: `RUN_COUNTED`.
    """
    if attempts is None:
        return None if reported is None else Usage.model_validate(reported)
    used = [attempt_usage(attempt["reported"], attempt["counted"]) for attempt in attempts]
    return Usage.sum(usage for usage in used if usage is not None)
