"""`runhost runs`: what runs, what ran, and why it ended as it did."""

from typing import TYPE_CHECKING, Annotated

import typer

from runhost.cli.grants import accesses_command, authorization_command, revoke_command
from runhost.cli.host import ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import cell, new_table, note, results, seconds_between, status_cell, write_json
from runhost.cli.paging import MAX_ITEMS, read_items
from runhost.protocol import AgentRun, AgentRunAttempt, AgentRunEvent, RunStatus

if TYPE_CHECKING:
    from rich.table import Table

    from runhost.client import RunhostClient

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run, as `runhost runs list` shows it.")]

app = typer.Typer(no_args_is_help=True, help="List runs, look inside one, follow it live, cancel it, take grants back.")


@app.command("list", epilog=examples("runhost runs list --status failed", "runhost runs list --agent greeter --json"))
def list_command(
    status: Annotated[RunStatus | None, typer.Option(help="Only runs in this status.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only runs of this agent.")] = None,
    runner: Annotated[str | None, typer.Option(help="Only runs of this runner.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Only runs of this conversation.")] = None,
    bot: Annotated[str | None, typer.Option(help="Only runs of this bot.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_ITEMS, help="Runs at most.")] = 20,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""
    from runhost.cli.documents import validated
    from runhost.client import RunFilter

    fields = {
        "status": status,
        "agent_id": agent,
        "runner_id": runner,
        "conversation_id": conversation,
        "bot_id": bot,
    }
    which = validated(RunFilter, {name: value for name, value in fields.items() if value is not None})

    async def command(client: "RunhostClient") -> None:
        runs = await read_items(lambda size, cursor: client.list_runs(which, limit=size, cursor=cursor), limit)
        if as_json:
            for run in runs:
                write_json(run.model_dump(mode="json"))
        elif runs:
            results().print(_run_table(runs))
        else:
            note("No run matches. `runhost events send` starts one.")

    talk(api, key, command)


@app.command("show", epilog=examples("runhost runs show RUN_ID", "runhost runs show RUN_ID --json | jq .run.status"))
def show_command(
    run_id: RunId,
    every_row: Annotated[bool, typer.Option("--all", help="Show every delta, not the first and last ones.")] = False,
    limit: Annotated[int, typer.Option(min=0, max=1_000_000, help="Ledger rows at most, from the first.")] = 1_000,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show a run, its attempts and its ledger.

    With --json it is one object with run, attempts and events.
    """

    async def command(client: "RunhostClient") -> None:
        run = await client.get_run(run_id)
        attempts = (await client.attempts(run_id)).items
        events = await read_items(lambda size, cursor: client.run_events(run_id, limit=size, cursor=cursor), limit)
        if as_json:
            write_json(
                {
                    "run": run.model_dump(mode="json"),
                    "attempts": [attempt.model_dump(mode="json") for attempt in attempts],
                    "events": [event.model_dump(mode="json") for event in events],
                }
            )
            return
        _show(run, attempts, events, every_row=every_row)

    talk(api, key, command)


@app.command("follow", epilog=examples("runhost runs follow RUN_ID", "runhost runs follow RUN_ID --json --after 100"))
def follow_command(
    run_id: RunId,
    after: Annotated[int, typer.Option(min=0, help="Sequence of the last ledger row you know.")] = 0,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Write what a run says as it says it, until it has ended.

    Its text goes to standard output, how it ended to standard error. With
    --json each ledger row is one object. A lost connection is taken up again
    where it broke; Ctrl-C stops the watching, not the run.
    """
    from runhost.cli.live_run import exit_code_of, watch

    async def command(client: "RunhostClient") -> None:
        run = await watch(client, run_id, after=after, as_json=as_json)
        raise typer.Exit(exit_code_of(run))

    talk(api, key, command)


@app.command("cancel", epilog=examples("runhost runs cancel RUN_ID --reason 'wrong question'"))
def cancel_command(
    run_id: RunId,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the ledger, at most 1,000 characters.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Ask for the end of a run, which comes soon after."""

    async def command(client: "RunhostClient") -> None:
        run = await client.cancel_run(run_id, reason=reason)
        if as_json:
            write_json(run.model_dump(mode="json"))
        else:
            note(f"Run {run.run_id} is told to end. `runhost runs follow {run.run_id}` shows how it does.")

    talk(api, key, command)


app.command(
    "authorization", epilog=examples("runhost runs authorization RUN_ID", "runhost runs authorization RUN_ID --json")
)(authorization_command)
app.command("accesses", epilog=examples("runhost runs accesses RUN_ID", "runhost runs accesses RUN_ID --json"))(
    accesses_command
)
app.command(
    "revoke",
    epilog=examples("runhost runs revoke RUN_ID model gpt --reason 'too dear'", "runhost runs revoke RUN_ID run"),
)(revoke_command)


def _show(run: AgentRun, attempts: list[AgentRunAttempt], events: list[AgentRunEvent], *, every_row: bool) -> None:
    from runhost.cli.ledger_table import ledger_table

    console = results()
    console.print(_facts(run))
    console.print()
    console.print(_attempt_table(attempts))
    console.print()
    console.print(ledger_table(events, every_row=every_row, title="Ledger"))
    if len(events) < run.last_sequence:
        note(f"{run.last_sequence - len(events)} later rows are not shown; --limit shows more.")


def _run_table(runs: list[AgentRun]) -> "Table":
    table = new_table("run", "status", "agent", "conversation", "created (UTC)", "took")
    for run in runs:
        took = seconds_between(run.created_at, run.finished_at)
        cells = (cell(run.agent_id), cell(run.conversation_id), cell(run.created_at), cell(took))
        table.add_row(cell(run.run_id), status_cell(run.status.value), *cells)
    table.columns[0].no_wrap = True
    return table


def _facts(run: AgentRun) -> "Table":
    table = new_table("Run", run.run_id)
    table.columns[1].header_style = "bold"
    table.add_row("status", status_cell(run.status.value))
    facts = {
        "code": run.status_code,
        "reason": run.status_reason,
        "agent": None if run.agent_id is None else f"{run.agent_id} (version {run.agent_version})",
        "runner": run.runner_id,
        "event": run.event_id,
        "conversation": run.conversation_id,
        "created": run.created_at,
        "started": run.started_at,
        "finished": run.finished_at,
        "deadline": run.deadline_at,
        "cancel requested": run.cancel_requested_at,
        "tokens": None if run.usage is None else run.usage.total_tokens,
    }
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, cell(value))
    return table


def _attempt_table(attempts: list[AgentRunAttempt]) -> "Table":
    table = new_table("attempt", "outcome", "code", "took", "worker", "reason", title="Attempts")
    for attempt in attempts:
        took = seconds_between(attempt.started_at, attempt.ended_at)
        cells = (cell(attempt.code), cell(took), cell(attempt.worker_identity), cell(attempt.reason))
        table.add_row(cell(attempt.attempt), status_cell(attempt.outcome), *cells)
    return table
