"""Threads for the blocking calls of one run."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock, Thread
from typing import Any


class BlockingCalls(ThreadPoolExecutor):
    """Executor behind `asyncio.to_thread` and name look-ups inside a run.

    Threads of the standard executor outlive their work, and a process waits for each of them when it exits.
    Here a thread ends with its last call and is a daemon, so a call that never returns keeps neither the run
    nor the worker from ending; `busy` tells how many there are. It is a `ThreadPoolExecutor` because event
    loops take no other kind.

    Args:
        name: prefix of the names of its threads.
        limit: calls that run at the same time; more wait.
    """

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(max_workers=limit, thread_name_prefix=name)
        self.busy = 0
        self._name = name
        self._limit = limit
        self._guard = Lock()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn` on a thread as soon as one is free."""
        future: Future[Any] = Future()
        with self._guard:
            self._calls.append((future, partial(fn, *args, **kwargs)))
            if self.busy == self._limit:
                return future
            self.busy += 1
        Thread(target=self._work, name=f"{self._name}-blocking", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            with self._guard:
                if not self._calls:
                    self.busy -= 1
                    return
                future, call = self._calls.popleft()
            if future.set_running_or_notify_cancel():
                _settle(future, call)
            # Keep neither arguments nor result alive while the next call runs.
            del future, call


def _settle(future: "Future[Any]", call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001  whatever it raises is for the one that awaits it
        future.set_exception(error)
    else:
        future.set_result(result)
