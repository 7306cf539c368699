"""`runhost bindings`: which events lead to which agent."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import cell, new_table, note, results, write_json
from runhost.cli.paging import read_items

if TYPE_CHECKING:
    from runhost.client import RunhostClient

app = typer.Typer(no_args_is_help=True, help="Bindings: which events lead to which agent.")


@app.command(
    "put",
    epilog=examples(
        "runhost bindings put chat --agent helper",
        "runhost bindings put support --agent helper --bot b1 --event-type message.received "
        "--event-type group.member_joined",
    ),
)
def put_command(
    binding_id: Annotated[str, typer.Argument(metavar="BINDING_ID", help="Id of the binding, of your choice.")],
    agent: Annotated[str | None, typer.Option(help="Agent that the events lead to.")] = None,
    bot: Annotated[str | None, typer.Option(help="Only events of this bot; else of the whole workspace.")] = None,
    event_types: Annotated[
        list[str] | None,
        typer.Option("--event-type", help="Event type; may be given more than once. message.received if left out."),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Decides among bindings of one scope, higher first.")] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Keep it, but let it lead nothing.")] = False,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="The whole binding in JSON; - reads standard input.")
    ] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create or replace a binding.

    A bot's binding wins over the workspace's. Two that fit an event alike
    leave no choice: then no run starts.
    """
    from runhost.cli.documents import object_from_file, validated
    from runhost.client import BindingRequest

    fields: dict[str, Any] = object_from_file(file, "--file") if file is not None else {}
    options: dict[str, Any] = {
        "agent_id": agent,
        "scope": None if bot is None else {"scope_type": "bot", "scope_id": bot},
        "event_types": event_types or None,
        "priority": priority,
        "enabled": False if disabled else None,
    }
    fields |= {name: value for name, value in options.items() if value is not None}
    if "agent_id" not in fields:
        raise typer.BadParameter("say which agent: --agent, or agent_id in --file")
    binding = validated(BindingRequest, fields)

    async def command(client: "RunhostClient") -> None:
        put = await client.put_binding(binding_id, binding)
        if as_json:
            write_json(put.model_dump(mode="json"))
        else:
            note(f"Binding {put.binding_id}: {', '.join(put.event_types)} leads to agent {put.agent_id}.")

    talk(api, key, command)


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the bindings."""

    async def command(client: "RunhostClient") -> None:
        bindings = await read_items(lambda size, cursor: client.list_bindings(limit=size, cursor=cursor))
        if as_json:
            for binding in bindings:
                write_json(binding.model_dump(mode="json"))
        elif bindings:
            table = new_table("binding", "agent", "scope", "events", "priority", "enabled")
            for binding in bindings:
                scope = " ".join(part for part in (binding.scope.scope_type, binding.scope.scope_id) if part)
                cells = (binding.agent_id, scope, ", ".join(binding.event_types), binding.priority, binding.enabled)
                table.add_row(cell(binding.binding_id), *map(cell, cells))
            results().print(table)
        else:
            note("There is no binding yet. `runhost bindings put` makes one.")

    talk(api, key, command)
