"""One attempt: a runner on one side, its journal on the other, and everything that may stop it in between."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from activities.deadline import DEADLINE_PASSED, failed_in_time
from activities.journal import AttemptJournal
from runhost.protocol import AgentRunContext, AgentRunnerDescriptor, JsonObject, RunFailureCode, RunStatus
from runhost.sdk.connection import HostConnection
from runners.errors import RunnerError
from runners.transport import Diagnosable, Residual, RunnerSession, RunnerTransport, StopReason
from stores.errors import RunTerminal, StaleAttempt
from stores.journal import AttemptEnd

# How long a runner may take to end by itself once it was told to.
STOP_GRACE_SECONDS = 5.0
# How long it may take to close after it has said its last word.
ENDED_GRACE_SECONDS = 1.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class AttemptPlan:
    """What an attempt runs, and how its runner reaches the host."""

    descriptor: AgentRunnerDescriptor
    context: AgentRunContext
    host: HostConnection
    deadline_at: datetime | None


class StopSignal:
    """Tells an attempt to end. It exists before the attempt does, so that no cancel falls between the two."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self._told = asyncio.Event()

    def tell(self, reason: StopReason) -> None:
        """Ask for the end; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self._told.set()

    async def wait(self) -> None:
        """Wait until somebody asks."""
        await self._told.wait()


class Attempt:
    """Feeds the journal from the runner until the runner ends, or is told to.

    Whatever happens in the runner becomes an end of the attempt; only what stands against writing it (the
    fence, the database) is raised.
    """

    def __init__(
        self, plan: AttemptPlan, transport: RunnerTransport, journal: AttemptJournal, stop: StopSignal
    ) -> None:
        self._plan = plan
        self._transport = transport
        self._journal = journal
        self._stop = stop

    async def run(self) -> AttemptEnd | None:
        """Run to the end and return it; None where the attempt was given up for another to take over.

        Raises:
            StaleAttempt: A newer attempt holds the fence.
            RunTerminal: The run has ended otherwise.
        """
        try:
            session = self._transport.open(self._plan.descriptor, self._plan.context, self._plan.host)
        except RunnerError as error:
            return await self._journal.close(_crash_end(error))
        if isinstance(session, Diagnosable):
            self._journal.diagnose = session.diagnostics
        reading = asyncio.create_task(self._read(session))
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([reading, stopping], timeout=self._seconds_left(), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                # Neither ended nor told to stop: the deadline.
                self._stop.tell(StopReason.DEADLINE)
                self._journal.stopping(self._end(None))
            residual = await self._let_go(session, reading)
            crash = await reading
        finally:
            stopping.cancel()
            reading.cancel()
        return await self._close(crash, residual)

    async def _read(self, session: RunnerSession) -> RunnerError | None:
        """Journal what the runner yields until it ends; return how it broke, if it did."""
        try:
            while batch := await session.next_batch():
                for value in batch:
                    await self._journal.add(value)
                if self._journal.end is not None:
                    return None
        except RunnerError as error:
            return error
        except (StaleAttempt, RunTerminal):
            self._stop.tell(StopReason.SUPERSEDED)
            raise
        return None

    async def _let_go(self, session: RunnerSession, reading: asyncio.Task[RunnerError | None]) -> Residual | None:
        """Stop the runner, whose last results are still read meanwhile."""
        if self._stop.reason is None:
            return await session.stop(StopReason.ENDED, ENDED_GRACE_SECONDS)
        residual = await session.stop(self._stop.reason, STOP_GRACE_SECONDS)
        await asyncio.wait([reading])
        return residual

    async def _close(self, crash: RunnerError | None, residual: Residual | None) -> AttemptEnd | None:
        facts: JsonObject = {}
        if residual is not None:
            facts["residual"] = {"kind": residual.kind, "detail": residual.detail}
            _log.warning("runner.residual", kind=residual.kind, detail=residual.detail)
        return await self._journal.close(self._end(crash), facts)

    def _end(self, crash: RunnerError | None) -> AttemptEnd | None:
        """Return the end that the host saw. The journal keeps the runner's own word, where it gave one."""
        if self._stop.reason in {StopReason.SHUTDOWN, StopReason.SUPERSEDED}:
            return None
        if self._stop.reason == StopReason.CANCELLED:
            return AttemptEnd(RunStatus.CANCELLED.value, RunFailureCode.CANCELLED.value, "A cancel was asked for.")
        if self._stop.reason == StopReason.DEADLINE:
            return DEADLINE_PASSED
        if crash is None:
            return AttemptEnd(RunStatus.COMPLETED.value)
        return failed_in_time(_crash_end(crash), self._plan.deadline_at)

    def _seconds_left(self) -> float | None:
        deadline_at = self._plan.deadline_at
        return None if deadline_at is None else max(0.0, (deadline_at - datetime.now(UTC)).total_seconds())


def _crash_end(error: RunnerError) -> AttemptEnd:
    return AttemptEnd(RunStatus.FAILED.value, str(error.code), str(error))
