"""Waiting for something without sleeping a guessed time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

Value = TypeVar("Value")

POLL_SECONDS = 0.01
MAX_POLL_SECONDS = 0.1


@overload
async def eventually(predicate: Callable[[], Awaitable[Value]], within_seconds: float = ...) -> Value: ...
@overload
async def eventually(predicate: Callable[[], Value], within_seconds: float = ...) -> Value: ...
async def eventually(predicate: Callable[[], object], within_seconds: float = 10.0) -> object:
    """Call ``predicate``, plain or async, until its answer is true; returns that answer.

    Raises:
        AssertionError: It was still false after ``within_seconds``; the text has the last answer.
    """
    deadline = time.monotonic() + within_seconds
    pause = POLL_SECONDS
    while True:
        answer = predicate()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            message = f"still {answer!r} after {within_seconds} s: {inspect.getsource(predicate).strip()}"
            raise AssertionError(message)
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, MAX_POLL_SECONDS)
