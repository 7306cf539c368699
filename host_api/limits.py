"""How often a run may call (D-16)."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from host_api.errors import HostCallError
from runhost.protocol import ErrorCode

MAX_RUNS = 10_000
"""Runs whose bucket is kept; the one that was silent longest is forgotten first, when it is full again anyway."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Calls of one run per second, and how many may come at once."""

    calls_per_second: float = 50.0
    burst: int = 200


class RateLimiter:
    """A token bucket per run, in this process: behind several API processes a run has one in each."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        # What is left in the bucket, and when that was counted (monotonic seconds).
        self._buckets: OrderedDict[UUID, tuple[float, float]] = OrderedDict()

    def take(self, run_id: UUID) -> None:
        """Count a call.

        Raises:
            HostCallError: `rate_limited`, with the seconds until the next call is let through.
        """
        limit, now = self._limit, time.monotonic()
        left, counted_at = self._buckets.get(run_id, (float(limit.burst), now))
        left = min(float(limit.burst), left + (now - counted_at) * limit.calls_per_second)
        self._buckets[run_id] = (max(left - 1, 0.0) if left >= 1 else left, now)
        self._buckets.move_to_end(run_id)
        if len(self._buckets) > MAX_RUNS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise HostCallError(
                ErrorCode.RATE_LIMITED,
                f"This run has made more than {limit.burst} calls at once or {limit.calls_per_second:g} a second.",
                retryable=True,
                retry_after_seconds=round((1 - left) / limit.calls_per_second, 3),
            )
