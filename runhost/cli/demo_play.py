"""What the demo does, from an empty folder to an empty folder."""

import asyncio
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import typer
from rich.console import Console, RenderableType

from runhost.cli.answer_text import AnswerText
from runhost.cli.demo_agent import LanguageModel, scripted_agent
from runhost.cli.dev_stack import DevOptions, DevStack, running_stack
from runhost.cli.ledger_table import ledger_table
from runhost.cli.live_run import summary
from runhost.cli.output import note, plain, write_json
from runhost.cli.supervisor import Supervisor
from runhost.client import BindingRequest, ClientError, RunhostClient
from runhost.embedded import DataDirectory, EmbeddedError
from runhost.embedded.temporal import NAMESPACE
from runhost.protocol import (
    AgentConfig,
    AgentEventEnvelope,
    AgentInput,
    AgentRun,
    AgentRunEvent,
    DeliveryContext,
    JsonObject,
    ResultType,
    RunStatus,
    workflow_id_for,
)

HOST = "host"
AGENT_ID = "demo"
CONVERSATION_ID = "demo"
POLL_SECONDS = 0.05
# From the message to the end of the run; two seconds are usual.
RUN_TIMEOUT_SECONDS = 120.0


class DemoFailed(Exception):
    """Something did not work; the text says what, and where the logs are."""


@dataclass(frozen=True)
class DemoOptions:
    """What the person wants to see."""

    message: str
    scripted: bool
    keep: bool
    as_json: bool


class Stage:
    """Where people look; programs look at standard output, which with ``as_json`` is left to them."""

    def __init__(self, *, as_json: bool) -> None:
        self._console = Console(stderr=as_json, highlight=False, markup=False)
        self._err = as_json

    def say(self, text: str, *, end: str = "\n") -> None:
        """Write a text of anybody."""
        typer.echo(plain(text + end), nl=False, err=self._err)

    def show(self, renderable: RenderableType) -> None:
        """Write something that has a form."""
        self._console.print(renderable)


async def play(options: DemoOptions, supervisor: Supervisor) -> int:
    """Play the demo and leave nothing behind; returns the exit code.

    Raises:
        EmbeddedError: The stack does not start.
        DemoFailed: It started, and something went wrong.
    """
    stage = Stage(as_json=options.as_json)
    with _Folder() as folder, DataDirectory(folder.path / "model") as directory:
        model = None if options.scripted else LanguageModel(directory)
        loading = None if model is None else asyncio.create_task(model.start())
        try:
            async with running_stack(DevOptions(folder.path / HOST), supervisor) as stack:
                agent = await choose_agent(loading, stage)
                outcome = await _run_once(stack, agent, options.message, stage, folder)
                if options.keep:
                    # Ctrl-C is how this ends, not what breaks it off.
                    with suppress(asyncio.CancelledError):
                        await _keep(stack, outcome, supervisor)
        finally:
            if model is not None and loading is not None:
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
                await model.stop()
    if not options.keep:
        # Now, to be the last line whatever the stopping had to say.
        write_json(outcome)
    return 0 if outcome["status"] == RunStatus.COMPLETED else 1


class _Folder:
    """A new folder, removed in the end unless somebody wants to read its logs."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="runhost-demo-"))
        # Postgres runs as another account where we are root.
        self.path.chmod(0o711)
        self._is_kept = False

    def keep(self) -> str:
        """Keep it, and return where its logs are."""
        self._is_kept = True
        return f"The logs are in {str(self.path / HOST / 'logs')!r}."

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit_: object) -> None:
        if not self._is_kept:
            shutil.rmtree(self.path, ignore_errors=True)


async def choose_agent(loading: asyncio.Task[AgentConfig] | None, stage: Stage) -> AgentConfig:
    """Return the agent that answers: the model when it has loaded, a script where it cannot."""
    if loading is None:
        return scripted_agent()
    try:
        return await loading
    except EmbeddedError as error:
        reason = str(error).strip().rpartition("\n")[2]
        stage.say(f"The language model does not run on this machine: {reason}. A script answers instead.")
        return scripted_agent()


async def _run_once(stack: DevStack, agent: AgentConfig, message: str, stage: Stage, folder: _Folder) -> JsonObject:
    """Send the message, show the run, and return what the last line says.

    Raises:
        DemoFailed: The host did not do its part.
    """
    try:
        async with asyncio.timeout(RUN_TIMEOUT_SECONDS), RunhostClient(stack.api, stack.key) as client:
            await _prepare(client, agent)
            stage.say(f"Agent {AGENT_ID!r} answers with {agent.runner_id}.\n\nYou:   {message}\nAgent: ", end="")
            run, events, outcome = await _talk(client, message, stage)
    except TimeoutError:
        raise DemoFailed(f"The run did not end within {RUN_TIMEOUT_SECONDS:.0f} s. {folder.keep()}") from None
    except ClientError as error:
        raise DemoFailed(f"{error}\n{folder.keep()}") from error
    stage.say("")
    stage.show(ledger_table(events, title="Ledger of the run, each row committed before it was sent to you"))
    if run.status != RunStatus.COMPLETED:
        stage.say(f"\nThe run {summary(run)}\n{folder.keep()}")
    workflows = f"{stack.ui}/namespaces/{NAMESPACE}/workflows"
    stage.say(f"\nTemporal UI, this run:  {workflows}/{workflow_id_for(str(outcome['run_id']))}")
    stage.say(f"Temporal UI, all runs:  {workflows}")
    return outcome


async def _prepare(client: RunhostClient, agent: AgentConfig) -> None:
    """Put the agent and lead chat messages to it, once a worker offers its runner."""
    # Its news come from another process, so there is nothing to wait for but time.
    while agent.runner_id not in {runner.descriptor.id for runner in (await client.runners()).items}:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
    await client.put_agent(AGENT_ID, agent)
    await client.put_binding(AGENT_ID, BindingRequest(agent_id=AGENT_ID))


async def _talk(client: RunhostClient, message: str, stage: Stage) -> tuple[AgentRun, list[AgentRunEvent], JsonObject]:
    """Send the message and write the answer as it comes; returns the run, its ledger, and their figures."""
    envelope = AgentEventEnvelope(
        event_id="demo-1",
        event_type="message.received",
        source="api",
        conversation_id=CONVERSATION_ID,
        input=AgentInput(text=message),
        delivery=DeliveryContext(surface="cli", supports_streaming=True),
    )
    sent_at = time.perf_counter()
    receipt = await client.send_event(envelope)
    if receipt.run_id is None:
        raise ClientError(f"The event led to no run: {receipt.detail or receipt.disposition}.")
    answer, events = AnswerText(), list[AgentRunEvent]()
    first_delta_ms = None
    async for event in client.follow_run(receipt.run_id):
        events.append(event)
        if event.type == ResultType.MESSAGE_DELTA and first_delta_ms is None:
            first_delta_ms = round((time.perf_counter() - sent_at) * 1000)
        stage.say(answer.take(event), end="")
    stage.say(answer.finish(), end="")
    run = await client.get_run(receipt.run_id)
    sequences = [event.sequence for event in events]
    return (
        run,
        events,
        {
            "run_id": run.run_id,
            "status": run.status.value,
            "results": sum(event.source == "runner" for event in events),
            "deltas": sum(event.type == ResultType.MESSAGE_DELTA for event in events),
            "contiguous": sequences == list(range(1, run.last_sequence + 1)),
            "first_delta_ms": first_delta_ms,
        },
    )


async def _keep(stack: DevStack, outcome: JsonObject, supervisor: Supervisor) -> None:
    """Say where everything is, and stay until cancelled."""
    write_json(outcome)
    note(
        f"\nRunning until Ctrl-C. In another terminal:\n\n  export RUNHOST_API_URL={stack.api} RUNHOST_KEY={stack.key}"
    )
    note(f"  runhost runs show {outcome['run_id']}\n  runhost events send 'And what if I stop?' --follow")
    await supervisor.watch()
