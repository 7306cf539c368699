"""When to ask again, and how long to wait before."""

import random
from dataclasses import dataclass

# Too many requests, and what proxies and the API itself answer while something restarts.
RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is.

    Attributes:
        max_tries: Requests at most for one call, the first included.
        first_delay_seconds: Before the second try; doubled for each further one.
        max_delay_seconds: Longest wait. A host that asks for more is not waited for.
        follow_for_seconds: How long somebody who follows a run tries to get back to a host that is gone.
    """

    max_tries: int = 4
    first_delay_seconds: float = 0.2
    max_delay_seconds: float = 10.0
    follow_for_seconds: float = 60.0

    def delay(self, failures: int, wanted_seconds: float | None = None) -> float | None:
        """Return the seconds to wait after so many failures in a row; None where waiting is too long.

        Args:
            failures: At least 1.
            wanted_seconds: What the host asks for, `Retry-After`.
        """
        if wanted_seconds is not None:
            return wanted_seconds if wanted_seconds <= self.max_delay_seconds else None
        # More doublings than this are beyond any sensible maximum, and one day beyond a float.
        delay = min(self.first_delay_seconds * 2 ** min(failures - 1, 30), self.max_delay_seconds)
        # Spread, or all clients of a host that comes back would ask at the same moment.
        return delay * random.uniform(0.5, 1.0)  # noqa: S311
