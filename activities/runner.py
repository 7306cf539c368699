"""`runner.invoke`: one attempt of one run, on a worker that holds the runner."""

import asyncio
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio import activity

from activities.attempt import Attempt, AttemptPlan, StopSignal
from activities.boundary import guarded, refusal, run_id_of
from activities.cancellation import CancelBoard
from activities.journal import AttemptJournal
from activities.messages import Ended, RunOrder
from activities.patience import until_available
from host_api.connection import AttemptConnection
from host_api.gate import HostApi
from host_api.session import Credentials
from runhost.protocol import AgentRunContext
from runners.transport import RunnerTransport, StopReason
from stores.attempts import ActivityExecution, AttemptStore, OpenAttempt
from stores.errors import RunTerminal, StaleAttempt
from stores.journal import AttemptEnd, JournalStore
from stores.notifications import LedgerAnnouncer
from stores.runners import RunnerStore

# Proof of life only; a cancel has its own, faster way (DESIGN 9).
HEARTBEAT_SECONDS = 5.0
_BEATS_PER_TIMEOUT = 3


class RunnerActivities:
    """Invokes the runners of one source. Their worker listens on a task queue of its own (DESIGN 2)."""

    def __init__(
        self,
        engine: AsyncEngine,
        journal: JournalStore,
        announcer: LedgerAnnouncer,
        cancels: CancelBoard,
        transport: RunnerTransport,
        host_api: HostApi,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._engine = engine
        self._reads = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._journal = journal
        self._announcer = announcer
        self._cancels = cancels
        self._transport = transport
        self._host_api = host_api
        self._heartbeat_seconds = heartbeat_seconds

    @activity.defn(name="runner.invoke")
    @guarded
    async def invoke(self, order: RunOrder) -> Ended:
        """Open an attempt, run the runner, journal what it yields, and say how it ended.

        Every end of the runner is a result; what is raised is the loss of this worker, which Temporal retries
        by another attempt. Lasts until the runner ends or the run's deadline passes.

        Raises:
            ApplicationError: ``StaleAttempt``, ``RunTerminal``: somebody else owns the run by now.
                ``DatabaseUnavailable``, retried: the database was away for too long.
            asyncio.CancelledError: The worker shuts down; retried.
        """
        run_id, stop = run_id_of(order), StopSignal()
        with self._cancels.holding(run_id, lambda: stop.tell(StopReason.CANCELLED)):
            # Its own task: a cancellation of the activity must never hit a query in flight (TEMPORAL 15, 5).
            work = asyncio.create_task(self._work(run_id, stop))
            await self._hold(work, stop)
        end = await work
        if end is None:
            raise asyncio.CancelledError
        return Ended(outcome=end.outcome, code=end.code, retryable=end.retryable)

    async def _work(self, run_id: UUID, stop: StopSignal) -> AttemptEnd | None:
        execution = _execution()
        opened = await until_available(lambda _tries: self._open(run_id, execution))
        if isinstance(opened, AttemptEnd):
            return opened
        plan = await until_available(lambda _tries: self._plan(opened))
        journal = AttemptJournal(self._engine, self._journal, self._announcer, opened)
        try:
            return await Attempt(plan, self._transport, journal, stop).run()
        except (StaleAttempt, RunTerminal) as error:
            raise refusal(type(error).__name__, "Somebody else owns the run by now.") from None

    async def _hold(self, work: asyncio.Task[AttemptEnd | None], stop: StopSignal) -> None:
        """Prove life until the work is done, and pass on what the activity is told."""
        timeout = activity.info().heartbeat_timeout
        every = self._heartbeat_seconds
        if timeout is not None:
            every = min(every, timeout.total_seconds() / _BEATS_PER_TIMEOUT)
        while not work.done():
            try:
                activity.heartbeat()
                await asyncio.wait([work], timeout=every)
            except asyncio.CancelledError:
                stop.tell(_reason())

    async def _open(self, run_id: UUID, execution: ActivityExecution) -> OpenAttempt | AttemptEnd:
        async with self._engine.begin() as connection:
            opened = await AttemptStore(connection).open(run_id, execution)
        if isinstance(opened, OpenAttempt):
            self._announcer.grown(run_id, opened.run.last_sequence)
        return opened

    async def _plan(self, opened: OpenAttempt) -> AttemptPlan:
        async with self._reads.connect() as connection:
            runner = await RunnerStore(connection).get(opened.run.runner_id)
        credentials = Credentials(opened.token, str(opened.run.run_id), runner.descriptor.plugin_id)
        return AttemptPlan(
            descriptor=runner.descriptor,
            context=AgentRunContext.model_validate(opened.run.context),
            host=AttemptConnection(self._host_api, credentials),
            deadline_at=opened.run.deadline_at,
        )


def _execution() -> ActivityExecution:
    info = activity.info()
    return ActivityExecution(
        temporal_run_id=info.workflow_run_id or "",
        activity_id=info.activity_id,
        activity_attempt=info.attempt,
        worker_identity=activity.client().identity,
    )


def _reason() -> StopReason:
    """Say why the activity is cancelled: only a request means that somebody wants the run to end (TEMPORAL 13)."""
    details = activity.cancellation_details()
    is_requested = details is not None and details.cancel_requested
    return StopReason.CANCELLED if is_requested else StopReason.SHUTDOWN
