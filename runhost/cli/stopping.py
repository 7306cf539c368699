"""Work that a signal stops in order, and a second one at once."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# As shells write it: 130 for Ctrl-C.
SIGNAL_EXIT = 128


async def until_stopped(
    work: Coroutine[Any, Any, int], *, on_first: Callable[[], None], on_second: Callable[[], None]
) -> int:
    """Do some work; the first signal cancels it, and it cleans up.

    Args:
        work: Returns an exit code.
        on_first: Told when it is cancelled.
        on_second: Makes the cleaning up end at once.

    Returns:
        The exit code of the work, or 128 and the number of the signal that cut it off.
    """
    task = asyncio.create_task(work)
    stopped_by: list[int] = []

    def stop(number: int) -> None:
        if stopped_by:
            on_second()
            return
        stopped_by.append(number)
        on_first()
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not stopped_by:
            raise
        return SIGNAL_EXIT + stopped_by[0]
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
