"""Waiting out a restart of the database inside an attempt.

Temporal retries what fails outside of a runner. Inside, a retry would start the runner again and throw away
the answer it is in the middle of, so an attempt waits for the database itself, for a bounded time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from stores.availability import is_unavailable

UNAVAILABLE_FOR_SECONDS = 60.0
_DELAYS = (0.05, 0.1, 0.2, 0.5, 1.0)

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


async def until_available(operation: Callable[[int], Awaitable[_T]]) -> _T:
    """Run ``operation`` until the database answers, for at most a minute.

    Args:
        operation: One try; given how many went before. It must be safe to repeat although an earlier try may
            have been committed without an answer.

    Raises:
        Exception: What the operation raised, where that is no unavailable database, or the minute is over.
    """
    began, tries = time.monotonic(), 0
    while True:
        try:
            return await operation(tries)
        except Exception as error:
            if not is_unavailable(error) or time.monotonic() - began > UNAVAILABLE_FOR_SECONDS:
                raise
            delay = _DELAYS[min(tries, len(_DELAYS) - 1)]
            _log.warning("database.unavailable", error=type(error).__name__, retry_after_seconds=delay)
            await asyncio.sleep(delay)
            tries += 1
