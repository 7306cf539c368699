"""How often a run may call, and how much at once (D-16)."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from host_api.errors import HostCallError
from runhost.protocol import ErrorCode
from runhost.protocol.host_api import MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, HostMethod

MAX_RUNS = 10_000
"""Runs whose bucket is kept; the one that was silent longest is forgotten first, when it is full again anyway."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one run may ask of the host.

    Attributes:
        calls_per_second: Calls in the long run.
        burst: Calls that may come at once.
        request_bytes: Most that the parameters of a call may hold as JSON; methods that carry values have a limit
            of their own.
        response_bytes: Most that an answer may hold: JSON, or the bytes inside it before base64.
    """

    calls_per_second: float = 50.0
    burst: int = 200
    request_bytes: int = MAX_REQUEST_BYTES
    response_bytes: int = MAX_RESPONSE_BYTES

    def request_bytes_of(self, method: HostMethod) -> int:
        """Return the most that the parameters of a method may hold."""
        has_own = method.max_request_bytes > MAX_REQUEST_BYTES
        return method.max_request_bytes if has_own else self.request_bytes

    @property
    def encoded_response_bytes(self) -> int:
        """The most that an answer may hold as JSON: bytes travel as base64, which is a third longer."""
        return self.response_bytes * 4 // 3 + 4096


class RateLimiter:
    """A token bucket per run, in this process: behind several API processes a run has one in each."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        # What is left in the bucket, and when that was counted (monotonic seconds).
        self._buckets: OrderedDict[UUID, tuple[float, float]] = OrderedDict()

    def take(self, run_id: UUID) -> None:
        """Count a call.

        Raises:
            HostCallError: `rate_limited`, with the seconds until the next call is let through.
        """
        limits, now = self._limits, time.monotonic()
        left, counted_at = self._buckets.get(run_id, (float(limits.burst), now))
        left = min(float(limits.burst), left + (now - counted_at) * limits.calls_per_second)
        self._buckets[run_id] = (max(left - 1, 0.0) if left >= 1 else left, now)
        self._buckets.move_to_end(run_id)
        if len(self._buckets) > MAX_RUNS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise HostCallError(
                ErrorCode.RATE_LIMITED,
                f"This run has made more than {limits.burst} calls at once or {limits.calls_per_second:g} a second.",
                retryable=True,
                retry_after_seconds=round((1 - left) / limits.calls_per_second, 3),
            )
