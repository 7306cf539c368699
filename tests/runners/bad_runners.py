"""Runners that work, and runners that do what no runner should."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from threading import current_thread
from typing import Any, ClassVar

import structlog

from runhost.protocol import AgentRunContext, AgentRunResult
from runhost.sdk import AgentRunner, results

FAR_FUTURE_SECONDS = 3_600.0

WORKER_SECRET: ContextVar[str] = ContextVar("WORKER_SECRET")


class Recording(AgentRunner):
    """Base of runners that note what happened to them, for tests to look at afterwards."""

    events: ClassVar[list[str]] = []


class Echo(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.message(ctx, ctx.input.text or "")
        yield results.completed(ctx)


class Counter(AgentRunner):
    """Yields the numbers from 0 to `config.count`, never awaiting."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        count = ctx.config["count"]
        assert isinstance(count, int)
        for number in range(count):
            yield number


class Endless(AgentRunner):
    """Yields for ever without awaiting, and keeps count."""

    yielded: ClassVar[int] = 0

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        while True:
            Endless.yielded += 1
            yield Endless.yielded


class ThreadNamer(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield current_thread().name
        yield id(asyncio.get_running_loop())
        yield WORKER_SECRET.get("nothing")
        yield structlog.contextvars.get_contextvars()


class PoliteSleeper(Recording):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.delta(ctx, "working")
        self.events.append("resumed")
        try:
            await asyncio.sleep(FAR_FUTURE_SECONDS)
        except asyncio.CancelledError as cancelled:
            self.events.append(f"told {cancelled.args[0]}")
            yield results.cancelled(ctx)
        finally:
            self.events.append("cleaned up")


class CancelledAtYield(Recording):
    """Is told to stop while it stands at a yield, its buffer full."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        try:
            while True:
                yield "more"
        except asyncio.CancelledError:
            yield "last words"


class CancelSwallower(Recording):
    """Awaits again and again, whatever it is told."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "started"
        self.events.append("resumed")
        while True:
            try:
                await asyncio.sleep(FAR_FUTURE_SECONDS)
            except asyncio.CancelledError:
                continue


class SlowCleaner(AgentRunner):
    """Takes longer to clean up than it is given."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "started"
        try:
            await asyncio.sleep(FAR_FUTURE_SECONDS)
        finally:
            await asyncio.sleep(FAR_FUTURE_SECONDS)


class BusyLoop(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "started"
        while True:
            pass


class StubbornBusyLoop(AgentRunner):
    """Survives the first interrupts."""

    survived: ClassVar[int] = 0

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "started"
        while StubbornBusyLoop.survived < 3:
            try:
                while True:
                    pass
            except BaseException:  # noqa: BLE001 - what this runner is for
                StubbornBusyLoop.survived += 1


class BlockedInCall(AgentRunner):
    """Sits in a C function for `config.seconds`."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        seconds = ctx.config["seconds"]
        assert isinstance(seconds, float)
        yield "started"
        time.sleep(seconds)  # noqa: ASYNC251 - what this runner is for
        yield "never wanted"


class ManyShortTurns(AgentRunner):
    """Works without awaiting for longer than the limit, but yields in between."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        for number in range(20):
            time.sleep(0.03)  # noqa: ASYNC251 - what this runner is for
            yield number


class Crash(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "before"
        raise ValueError("the secret is out")


class CrashWithoutText(AgentRunner):
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "before"
        raise self.Unspeakable


class SystemExiter(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "before"
        sys.exit(3)


class Interrupter(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "before"
        raise KeyboardInterrupt


class SelfCancelled(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "before"
        raise asyncio.CancelledError


class LoopStopper(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "before"
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
        yield "after"


class FailingConstructor(AgentRunner):
    def __init__(self) -> None:
        raise RuntimeError("no licence")

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "never"


class SlowConstructor(AgentRunner):
    made: ClassVar[int] = 0

    def __init__(self) -> None:
        time.sleep(0.01)
        SlowConstructor.made += 1

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        yield "done"


class PlainCoroutine(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return results.completed(ctx)


class PlainGenerator(AgentRunner):
    def run(self, ctx: AgentRunContext) -> Any:
        yield results.completed(ctx)


class RaisingCall(AgentRunner):
    def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        raise LookupError("before the first result")


class YieldsWhileClosed(AgentRunner):
    """Yields when it is closed, which no generator may."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        try:
            while True:
                yield "more"
        finally:
            yield "too late"


class LeavesTasks(Recording):
    """Ends while a task of its own still runs."""

    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        self.task = asyncio.create_task(self._work())
        await asyncio.sleep(0)
        yield "done"

    async def _work(self) -> None:
        try:
            await asyncio.sleep(FAR_FUTURE_SECONDS)
        finally:
            self.events.append("task ended")


class LeavesBlockingCall(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        seconds = ctx.config["seconds"]
        assert isinstance(seconds, float)
        yield "started"
        await asyncio.to_thread(time.sleep, seconds)


class UsesThreads(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[Any]:
        for number in await asyncio.gather(*(asyncio.to_thread(int, text) for text in "123456789" * 3)):
            yield number
