"""Runs a runner through a scenario, and never waits for ever."""

import asyncio
import time

from runners.conformance.contexts import build_context
from runners.conformance.host import RecordingHost
from runners.conformance.record import RunRecord
from runners.conformance.rules import rules_for
from runners.conformance.scenario import Scenario, StopPlan
from runners.conformance.target import Limits, Target
from runners.errors import RunnerError
from runners.transport import RunnerSession, StopReason

# A runner that has said nothing by then counts as being at work.
_AT_WORK_SECONDS = 5.0
# Calls after which a run is cut off: a runner that goes on trying need not be watched until its time is over.
_MAX_CALLS = 500
# Between results while nothing else turns the loop: a flood must not keep the kit from its clock.
_RESULTS_PER_TURN = 200


async def play(target: Target, scenario: Scenario, limits: Limits) -> list[RunRecord]:
    """Run a scenario, all its runs at the same time.

    Takes at most the time for a run and for ending it, as `limits` says. When it is cancelled, the runs are
    stopped before it returns.
    """
    exercises = [_Exercise(target, scenario, number, limits) for number in range(scenario.runs)]

    def note_work() -> None:
        # The endpoint cannot tell runs apart; a scenario that waits for work has one only.
        for exercise in exercises:
            exercise.note_work()

    if target.endpoint is not None:
        target.endpoint.play(scenario, note_work)
    async with asyncio.TaskGroup() as group:
        for exercise in exercises:
            group.create_task(exercise.run())
    records = [exercise.record for exercise in exercises]
    if target.endpoint is not None:
        for record in records:
            record.endpoint_calls = target.endpoint.calls
    return records


class _Exercise:
    """One run of a scenario."""

    def __init__(self, target: Target, scenario: Scenario, number: int, limits: Limits) -> None:
        self._target = target
        self._scenario = scenario
        self._limits = limits
        context = build_context(target, scenario, number)
        rules = rules_for(context.run_id, crosses_process=target.crosses_process)
        self._host = RecordingHost(context, scenario, self.note_work)
        self.record = RunRecord(scenario, number, context, rules, self._host)
        self._at_work = asyncio.Event()
        self._calls_too_often = asyncio.Event()
        self._may_read_on = asyncio.Event()
        if scenario.stop is not StopPlan.ONCE_AT_WORK:
            self._may_read_on.set()

    def note_work(self) -> None:
        """Know that the runner called something."""
        self._at_work.set()
        if self._host.calls > _MAX_CALLS:
            self._calls_too_often.set()

    async def run(self) -> None:
        """Run, stop where the scenario says so, and leave nothing."""
        try:
            session = self._target.transport.open(self._target.descriptor, self.record.context, self._host)
        except RunnerError as error:
            self.record.crash = error
            return
        reading = asyncio.create_task(self._read(session))
        try:
            await self._accompany(session, reading)
        finally:
            # Also when the kit is told to stop: nothing of a runner outlives it.
            self._may_read_on.set()
            left = await session.stop(StopReason.ENDED, self._limits.after_end_seconds)
            self.record.residual = self.record.residual or left
            await asyncio.wait([reading], timeout=self._limits.after_end_seconds)
            reading.cancel()
            await asyncio.wait([reading])
        self.record.close()

    async def _accompany(self, session: RunnerSession, reading: asyncio.Task[None]) -> None:
        match self._scenario.stop:
            case StopPlan.ONCE_AT_WORK:
                await _first_of(reading, self._at_work, _AT_WORK_SECONDS)
                await self._stop(session, reading, StopReason.CANCELLED)
            case StopPlan.AT_DEADLINE:
                await asyncio.wait([reading], timeout=self._seconds_to_deadline())
                await self._stop(session, reading, StopReason.DEADLINE)
            case StopPlan.NEVER:
                await _first_of(reading, self._calls_too_often, self._limits.run_seconds)
                self.record.is_cut_off = not reading.done()
                if self.record.is_cut_off:
                    await session.stop(StopReason.CANCELLED, self._limits.grace_seconds)

    async def _stop(self, session: RunnerSession, reading: asyncio.Task[None], reason: StopReason) -> None:
        """Tell the runner to stop, if it has not ended, and see how it takes that."""
        if reading.done() or self.record.end is not None:
            return
        self.record.was_at_work = True
        begun = time.monotonic()
        stopping = asyncio.create_task(session.stop(reason, self._limits.grace_seconds))
        self._may_read_on.set()
        try:
            self.record.residual = await stopping
        finally:
            stopping.cancel()
        self.record.stop_seconds = time.monotonic() - begun
        self.record.was_forced = self.record.stop_seconds >= self._limits.grace_seconds

    def _seconds_to_deadline(self) -> float:
        deadline_at = self.record.context.runtime.deadline_at or time.time()
        return max(0.0, deadline_at - time.time()) + self._limits.deadline_slack_seconds

    async def _read(self, session: RunnerSession) -> None:
        """Read until the runner ends, or for a moment after its last word, in which late results show."""
        loop = asyncio.get_running_loop()
        until: float | None = None
        try:
            while until is None or loop.time() < until:
                async with asyncio.timeout_at(until):
                    batch = await session.next_batch()
                if not batch:
                    return
                await self._take(batch)
                self._at_work.set()
                await self._may_read_on.wait()
                if until is None and self.record.end is not None:
                    until = loop.time() + self._limits.after_end_seconds
        except RunnerError as error:
            self.record.crash = error
        except TimeoutError:
            # It has said its last word and does not end; the stop that follows tells whether it can.
            return

    async def _take(self, batch: list[object]) -> None:
        for number, value in enumerate(batch, start=1):
            self.record.take(value)
            if number % _RESULTS_PER_TURN == 0:
                await asyncio.sleep(0)


async def _first_of(reading: asyncio.Task[None], event: asyncio.Event, seconds: float) -> None:
    """Wait for the end of the reading or for an event, at most so long."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait([reading, waiting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
