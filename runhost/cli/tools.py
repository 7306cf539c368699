"""`runhost tools`: tools that agents can be granted, and the servers that offer them."""

from typing import Annotated

import typer

from runhost.cli import tool_servers
from runhost.cli.host import ApiKey, ApiUrl, AsJson, examples
from runhost.cli.registry_commands import show_entry, show_list

app = typer.Typer(no_args_is_help=True, help="Tools that agents can be granted, and the servers that offer them.")
app.add_typer(tool_servers.app, name="servers")


@app.command("list", epilog=examples("runhost tools list", "runhost tools list --server search"))
def list_command(
    server: Annotated[str | None, typer.Option(metavar="SERVER_ID", help="Only tools of this server.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List the tools that the servers told last."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_tools(server_id=server, limit=size, cursor=cursor),
        columns=("tool", "server", "enabled", "what it does"),
        row=lambda tool: (tool.tool_name, tool.server_id, tool.enabled, tool.human_desc or tool.description),
        empty="There is no tool yet. `runhost tools servers put` registers a server.",
    )


@app.command("show", epilog=examples("runhost tools show search__web"))
def show_command(
    tool_name: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool, as `runhost tools list` has it.")],
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show a tool with the schema of its arguments."""
    show_entry((api, key), as_json, lambda client: client.get_tool(tool_name))
