"""`runhost events`: telling the host that something happened."""

import uuid
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runhost.cli.host import ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import EXIT_REFUSED, fail, note, write_json

if TYPE_CHECKING:
    from runhost.client import RunhostClient

app = typer.Typer(no_args_is_help=True, help="Tell the host that something happened.")


@app.callback()
def _group() -> None:
    # With one command only, typer would take this group for that command.
    pass


@app.command(
    "send",
    epilog=examples(
        "runhost events send 'What is a durable workflow?' --follow",
        "runhost events send 'And what is a ledger?' --conversation c1 --actor u1 --follow",
        'runhost events send --type group.member_joined --bot b1 --data \'{"group": "g1"}\'',
        "runhost events send --file envelope.json --json",
    ),
)
def send_command(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What was said.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="Envelope in JSON; - reads standard input.")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option(help="Id of the event; the same event under the same id is taken once.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Event type; message.received if left out.")] = None,
    bot: Annotated[str | None, typer.Option(help="Bot that it came in through; bindings may name one.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Conversation; with one, there is a transcript.")] = None,
    thread: Annotated[str | None, typer.Option(help="Thread of the conversation.")] = None,
    actor: Annotated[str | None, typer.Option(help="Id of the user who caused it.")] = None,
    data: Annotated[str | None, typer.Option(metavar="JSON", help="Structured payload, a JSON object.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Write what the run says, until it has ended.")] = False,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Send an event and say what became of it.

    The binding that fits the event says which agent answers. Options fill in
    what TEXT or --file leaves open, and win over the file. With --json the
    receipt is the first object; with --follow the ledger rows come after it.
    """
    from runhost.cli.documents import object_from_file, object_from_text, validated
    from runhost.protocol import AgentEventEnvelope

    if text is None and file is None and type_ is None:
        raise typer.BadParameter("say something: TEXT, --file, or at least --type")
    fields = object_from_file(file, "--file") if file is not None else _defaults()
    options: dict[str, Any] = {
        "event_id": event_id,
        "event_type": type_,
        "bot_id": bot,
        "conversation_id": conversation,
        "thread_id": thread,
        "actor": None if actor is None else {"actor_type": "user", "actor_id": actor},
        "data": None if data is None else object_from_text(data, "--data"),
        "input": None if text is None else {"text": text},
    }
    given = {name: value for name, value in options.items() if value is not None}
    envelope = validated(AgentEventEnvelope, fields | given)

    async def command(client: "RunhostClient") -> None:
        from runhost.cli.live_run import exit_code_of, watch

        receipt = await client.send_event(envelope)
        if as_json:
            write_json(receipt.model_dump(mode="json", exclude_none=True))
        else:
            again = " (it was sent before)" if receipt.disposition == "duplicate" else ""
            run = f", run {receipt.run_id}" if receipt.run_id else ""
            note(f"Event {receipt.event_id}: {receipt.original_disposition or receipt.disposition}{run}{again}")
        if receipt.detail:
            note(receipt.detail)
        if not follow:
            return
        if receipt.run_id is None:
            fail(EXIT_REFUSED, "There is no run to follow.")
        raise typer.Exit(exit_code_of(await watch(client, receipt.run_id, as_json=as_json)))

    talk(api, key, command)


def _defaults() -> dict[str, Any]:
    return {
        "event_id": f"cli-{uuid.uuid4()}",
        "event_type": "message.received",
        "source": "api",
        "input": {},
        "delivery": {"surface": "cli", "supports_streaming": True},
    }
