"""Watching a run on the terminal."""

import typer

from runhost.cli.answer_text import AnswerText
from runhost.cli.output import note, one_line, plain, seconds_between, write_json
from runhost.client import RunhostClient
from runhost.protocol import AgentRun, AgentRunEvent, HostEventType, JsonObject, ResultType, RunStatus


class LiveRun:
    """Writes rows as they come: the run's text to standard output, what else happens to standard error.

    Args:
        as_json: Write each row as one JSON object instead.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._answer = AnswerText()

    def take(self, event: AgentRunEvent) -> None:
        """Write what this row adds."""
        if self._as_json:
            write_json(event.model_dump(mode="json"))
            return
        typer.echo(plain(self._answer.take(event)), nl=False)
        if remark := _remark(event):
            typer.echo(self._answer.finish(), nl=False)
            note(remark)

    def finish(self) -> None:
        """End the last line."""
        typer.echo(self._answer.finish(), nl=False)


async def watch(client: RunhostClient, run_id: str, *, after: int = 0, as_json: bool) -> AgentRun:
    """Write a run's ledger until it has ended, then how; returns the run."""
    live = LiveRun(as_json=as_json)
    try:
        async for event in client.follow_run(run_id, after=after):
            live.take(event)
    finally:
        live.finish()
    run = await client.get_run(run_id)
    if not as_json:
        note(summary(run))
    return run


def summary(run: AgentRun) -> str:
    """Say in one line how a run stands."""
    took = seconds_between(run.created_at, run.finished_at)
    tokens = run.usage.total_tokens if run.usage else None
    parts = [
        run.status.value if took is None else f"{run.status.value} after {took}",
        f"{run.last_sequence} ledger rows",
        None if tokens is None else f"{tokens} tokens",
        None if run.current_attempt <= 1 else f"{run.current_attempt} attempts",
        f"run {run.run_id}",
    ]
    why = f"{run.status_code}: {run.status_reason}" if run.status_reason else run.status_code
    line = ", ".join(part for part in parts if part is not None)
    return line if why is None or run.status == RunStatus.COMPLETED else f"{line}\n{one_line(why, 500)}"


def exit_code_of(run: AgentRun) -> int:
    """Return 0 for a run that completed, 1 for any other end."""
    return 0 if run.status == RunStatus.COMPLETED else 1


def _remark(event: AgentRunEvent) -> str:
    """Return what a person wants to know of a row that says nothing itself."""
    data = event.data
    match event.type:
        case HostEventType.ATTEMPT_STARTED if event.attempt != 1:
            return f"Attempt {event.attempt} starts."
        case HostEventType.CANCEL_REQUESTED:
            return "Cancel requested."
        case HostEventType.GRANT_REVOKED if data.get("kind") == "run":
            return "Everything that the run may reach was taken back."
        case HostEventType.GRANT_REVOKED:
            return f"Taken back: {_shown(data, 'kind')} {_shown(data, 'id')}"
        case HostEventType.RESULT_REJECTED:
            return f"A result was rejected: {_shown(data, 'reason')}"
        case ResultType.TOOL_CALL_STARTED:
            return f"Tool {_shown(data, 'tool_name')} is called."
        case ResultType.ARTIFACT_CREATED:
            return f"Artifact {_shown(data, 'artifact_id')} was created: {_shown(data, 'name')}"
        case _:
            return ""


def _shown(data: JsonObject, name: str) -> str:
    return one_line(str(data.get(name, "?")))
