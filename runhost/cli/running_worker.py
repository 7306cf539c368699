"""A worker, put together: workflows, control activities, in-process runners (DESIGN 2)."""

import functools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine
from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

import runhost
from activities.cancellation import CancelBoard
from activities.maintenance import MaintenanceActivities
from activities.registry import RegistryAnnouncer
from activities.runner import HEARTBEAT_SECONDS, RunnerActivities
from activities.runs import RunActivities
from host_api.audit import AccessAudit
from host_api.gate import HostApi
from host_api.limits import CallLimits
from host_api.services import HostServices
from runhost.cli.reaching_out import open_providers
from runners.discovery import discover
from runners.in_process import InProcessTransport
from runners.registry import RunnerRegistry
from runners.routing import RoutingTransport
from runners.subprocess.transport import SubprocessTransport
from stores.cursors import CursorSigner
from stores.driver import driver_pool
from stores.host_secrets import CURSORS, shared_secret
from stores.journal import JournalStore
from stores.notifications import LedgerAnnouncer
from stores.partitions import ensure_partitions
from workflows.maintenance import MaintenanceWorkflow, ensure_schedule
from workflows.run import AgentRunWorkflow
from workflows.start import start_run

# Our own modules are not executed again for every run, which would cost as much as all of a run's workflow
# code. What the sandbox watches stays watched; the replay tests guard the rest (INV-11).
SANDBOX = SandboxRestrictions.default.with_passthrough_modules(
    "activities", "host_api", "providers", "runhost", "runners", "stores", "workflows"
)


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker is run.

    Attributes:
        task_queue: Where workflows and the in-process runners of this worker are scheduled.
        runner_paths: Folders with runners, besides those of installed packages.
        max_cached_workflows: Two thirds of the memory of an idle run is its cached workflow (DESIGN 11).
        max_open_runs: Runners at work in this process at once; more wait in Temporal.
        journal_connections: Database connections for the journal, besides those of the engine.
        host_api_connections: Likewise for the calls of runners.
        call_limits: How often a run may call the host, and how much at once.
        file_root: Folder that file artifacts lie in; None where there are none.
        mcp_stdio_commands: Beginnings of the command lines that may be started as tool servers.
        graceful_shutdown: How long runs go on undisturbed after a polite stop, before they are handed over.
    """

    task_queue: str = "runhost"
    runner_paths: tuple[Path, ...] = ()
    max_cached_workflows: int = 500
    max_open_runs: int = 1_000
    journal_connections: int = 10
    host_api_connections: int = 10
    call_limits: CallLimits = field(default_factory=CallLimits)
    file_root: Path | None = None
    mcp_stdio_commands: tuple[str, ...] = ()
    graceful_shutdown: timedelta = timedelta(seconds=15)
    heartbeat_seconds: float = HEARTBEAT_SECONDS


@asynccontextmanager
async def running_worker(
    client: Client, engine: AsyncEngine, database_url: str, options: WorkerOptions
) -> AsyncIterator[Worker]:
    """Run a worker inside the block; leaving it stops the worker politely."""
    registry = RunnerRegistry(functools.partial(discover, options.runner_paths))
    async with AsyncExitStack() as stack:
        pool = driver_pool(database_url, size=options.journal_connections, application_name="runhost journal")
        await stack.enter_async_context(pool)
        # A connection of its own: announcements must not wait behind the commits that they announce.
        own = await stack.enter_async_context(driver_pool(database_url, size=1, application_name="runhost announcer"))
        announcer = await stack.enter_async_context(LedgerAnnouncer(own))
        cancels = await stack.enter_async_context(CancelBoard(engine, database_url))
        await stack.enter_async_context(RegistryAnnouncer(engine, database_url, registry, options.task_queue))
        async with engine.begin() as connection:
            await ensure_partitions(connection, datetime.now(UTC))
            cursors = CursorSigner(await shared_secret(connection, CURSORS))
        await ensure_schedule(client, task_queue=options.task_queue)
        calls = driver_pool(database_url, size=options.host_api_connections, application_name="runhost host api")
        await stack.enter_async_context(calls)
        audit = await stack.enter_async_context(AccessAudit(calls))
        providers = await stack.enter_async_context(open_providers(options.mcp_stdio_commands))
        services = HostServices(
            engine,
            calls,
            cursors,
            runhost.__version__,
            file_root=options.file_root,
            models=providers.models,
            tools=providers.tools,
        )
        host_api = HostApi(services, audit, limits=options.call_limits)
        runs = RunActivities(engine, announcer, cursors, host_version=runhost.__version__)
        runner = RunnerActivities(
            engine,
            JournalStore(pool),
            announcer,
            cancels,
            RoutingTransport(registry, in_process=InProcessTransport(registry), programs=SubprocessTransport(registry)),
            host_api,
            heartbeat_seconds=options.heartbeat_seconds,
        )
        maintenance = MaintenanceActivities(engine, functools.partial(start_run, client, task_queue=options.task_queue))
        worker = Worker(
            client,
            task_queue=options.task_queue,
            workflows=[AgentRunWorkflow, MaintenanceWorkflow],
            activities=[
                runs.prepare,
                runs.tell_cancel,
                runs.finalize,
                runner.invoke,
                maintenance.start_never_started,
                maintenance.ensure_partitions,
            ],
            workflow_runner=SandboxedWorkflowRunner(SANDBOX),
            max_cached_workflows=options.max_cached_workflows,
            max_concurrent_activities=options.max_open_runs,
            graceful_shutdown_timeout=options.graceful_shutdown,
            workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
            activity_task_poller_behavior=PollerBehaviorAutoscaling(),
        )
        async with worker:
            yield worker
