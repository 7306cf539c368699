"""The control activities of a run: prepare, tell a cancel, finalize. Local activities: short transactions."""

from datetime import UTC, datetime
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from temporalio import activity

from activities.boundary import guarded, refusal, run_id_of, uninterrupted
from activities.messages import Ended, FinalizeOrder, Invocation, Prepared, RunOrder, Settled
from activities.resources import ResourceRequest
from activities.settlement import settle
from activities.snapshot import Grants, build_authorization, build_context, build_grants, deadline_for
from activities.state_scopes import state_scopes
from runhost.protocol import AgentConfig, AgentRunnerDescriptor, RunFailureCode, RunStatus
from stores.agents import AgentStore, AgentVersion
from stores.attempts import AttemptStore
from stores.catalog import CatalogStore
from stores.cursors import CursorSigner, transcript_query
from stores.errors import RunnerUnknown
from stores.notifications import CONTROL_CHANNEL, LedgerAnnouncer, notify
from stores.runners import RegisteredRunner, RunnerStore
from stores.runs import RunRow, RunStore
from stores.state import StateStore
from stores.transcripts import ConversationScope, TranscriptStore

_log = structlog.get_logger(__name__)


class RunActivities:
    """What the run workflow asks of the database. Each method is one transaction and safe to run twice."""

    def __init__(
        self, engine: AsyncEngine, announcer: LedgerAnnouncer, cursors: CursorSigner, *, host_version: str
    ) -> None:
        self._engine = engine
        self._announcer = announcer
        self._cursors = cursors
        self._host_version = host_version

    @activity.defn(name="runs.prepare")
    @uninterrupted
    @guarded
    async def prepare(self, order: RunOrder) -> Prepared:
        """Freeze what the run may reach and what it starts from, and say how to invoke its runner.

        A second call finds both frozen and answers the same.

        Raises:
            ApplicationError: ``WrongWorkflow``, ``RunNotFound``, or ``RunAlreadyCompleted``: somebody started
                a completed run again ("Start Workflow Like This One").
        """
        run_id = run_id_of(order)
        async with self._engine.begin() as connection:
            run = await RunStore(connection).load(run_id, lock=True)
            if run.status == RunStatus.COMPLETED:
                raise _already_completed(run_id)
            if run.status.is_terminal:
                return Prepared(ended=Ended(outcome=run.status, code=run.status_code))
            if run.cancel_requested_at is not None:
                return Prepared(ended=Ended(outcome=RunStatus.CANCELLED, code=RunFailureCode.CANCELLED))
            agent = await AgentStore(connection, run.workspace_id).get(run.agent_id, run.agent_version)
            try:
                runner = await RunnerStore(connection).get(run.runner_id)
            except RunnerUnknown:
                return Prepared(ended=Ended(outcome=RunStatus.FAILED, code=RunFailureCode.RUNNER_NOT_FOUND))
            deadline_at = await self._freeze(connection, run, agent, runner)
        return Prepared(
            invocation=Invocation(
                task_queue=runner.task_queue,
                deadline_at=deadline_at.timestamp() if deadline_at else None,
                max_attempts=agent.config.max_attempts,
                heartbeat_timeout_seconds=agent.config.heartbeat_timeout_seconds,
            )
        )

    @activity.defn(name="runs.tell_cancel")
    @uninterrupted
    @guarded
    async def tell_cancel(self, order: RunOrder) -> None:
        """Note the cancel in the ledger and tell the worker that holds the run."""
        run_id = run_id_of(order)
        async with self._engine.begin() as connection:
            sequence = await RunStore(connection).request_cancel(run_id, None)
        if sequence is not None:
            self._announcer.grown(run_id, sequence)
        await notify(self._engine, CONTROL_CHANNEL, f"cancel:{run_id}")

    @activity.defn(name="runs.finalize")
    @uninterrupted
    @guarded
    async def finalize(self, order: FinalizeOrder) -> Settled:
        """Write the terminal status, once; a repeated call answers what stands."""
        run_id = run_id_of(order)
        async with self._engine.begin() as connection:
            runs, attempts = RunStore(connection), AttemptStore(connection)
            run = await runs.load(run_id, lock=True)
            if run.status.is_terminal:
                return Settled(status=run.status, code=run.status_code)
            if order.is_cancel_requested:
                await runs.request_cancel(run_id, None)
            own_end = await attempts.read_end(run)
            end, attempt_end = settle(order.ended, own_end)
            if attempt_end is not None and run.current_attempt:
                await attempts.end(run, attempt_end)
            sequence = await runs.settle(run, end)
        self._announcer.grown(run_id, sequence)
        _log.info("run.ended", run_id=str(run_id), status=end.status.value, code=end.code)
        return Settled(status=end.status, code=end.code)

    async def _freeze(
        self, connection: AsyncConnection, run: RunRow, agent: AgentVersion, runner: RegisteredRunner
    ) -> datetime | None:
        if run.authorization is not None:
            return run.deadline_at
        now = datetime.now(UTC)
        config = agent.config
        scopes = state_scopes(
            run.envelope,
            config.state_policy,
            workspace_id=run.workspace_id,
            runner_id=run.runner_id,
            agent_id=run.agent_id,
            binding_id=run.binding_id,
        )
        deadline_at = deadline_for(config.runner_config, now)
        grants = await self._grants(connection, run, config, runner.descriptor)
        context = build_context(
            run,
            config,
            grants,
            state=await StateStore(connection).snapshot(scopes.keys),
            latest_cursor=await self._latest_cursor(connection, run),
            deadline_at=deadline_at,
            host_version=self._host_version,
            now=now,
        )
        await RunStore(connection).freeze(
            run.run_id,
            authorization=build_authorization(run, config, runner.descriptor, scopes, grants),
            context=context.model_dump(mode="json", exclude={"resources"}) | {"resources": grants.document},
            deadline_at=deadline_at,
        )
        return deadline_at

    async def _grants(
        self, connection: AsyncConnection, run: RunRow, config: AgentConfig, descriptor: AgentRunnerDescriptor
    ) -> Grants:
        request = ResourceRequest(
            descriptor.permissions,
            descriptor.capabilities,
            config.resource_policy,
            config.runner_config,
            descriptor.config_schema,
        )
        catalog = await CatalogStore(connection, run.workspace_id).read(request.query)
        for kind, count in request.unknown(catalog).items():
            # What an agent names and nobody has is no failure of the run (HOST 6.1).
            _log.warning("snapshot.left_out", run_id=str(run.run_id), kind=kind, count=count)
        return build_grants(run, config, descriptor, request, catalog)

    async def _latest_cursor(self, connection: AsyncConnection, run: RunRow) -> str | None:
        if run.conversation_id is None:
            return None
        scope = ConversationScope(run.conversation_id, run.bot_id, run.thread_id)
        position = await TranscriptStore(connection, run.workspace_id).position_before(scope, run.event_id)
        if position is None:
            return None
        query = transcript_query(run.workspace_id, run.conversation_id, run.bot_id, run.thread_id)
        return self._cursors.sign(query, position)


def _already_completed(run_id: UUID) -> Exception:
    return refusal(
        "RunAlreadyCompleted",
        f"Run {run_id} has completed and does not reopen. Start a new run instead.",
    )
