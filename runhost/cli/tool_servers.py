"""`runhost tools servers`: MCP servers that offer tools."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import note, write_json
from runhost.cli.registry_commands import end_entry, secret_from_environment, secrets_by_name, show_entry, show_list

if TYPE_CHECKING:
    from runhost.client import RunhostClient

# A server may offer a thousand; these many say enough to see that it is the right one.
NAMED_TOOLS = 10

ServerId = Annotated[
    str,
    typer.Argument(metavar="SERVER_ID", help="Id of the server, of your choice; it begins the names of its tools."),
]

app = typer.Typer(no_args_is_help=True, help="MCP servers that offer tools.")


@app.command(
    "put",
    epilog=examples(
        "runhost tools servers put search --url https://tools.example/mcp --bearer-env SEARCH_TOKEN",
        "runhost tools servers put web --url https://web.example/mcp --header X-Api-Key=WEB_KEY",
        "runhost tools servers put clock --env TIMEZONE -- uvx mcp-server-time",
    ),
)
def put_command(
    server_id: ServerId,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM ARGUMENT", help="Program that the host starts.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Address of a server over HTTP.")] = None,
    bearer_env: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="Environment variable with the token of `Authorization: Bearer`."),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="NAME=VARIABLE",
            help="A header with the value of an environment variable; may be given more than once.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VARIABLE]",
            help="A variable for the program, with the value that it, or VARIABLE, has here; may be given more "
            "than once.",
        ),
    ] = None,
    no_secrets: Annotated[
        bool, typer.Option("--no-secrets", help="Forget the headers and variables that are stored.")
    ] = False,
    disabled: Annotated[
        bool, typer.Option("--disabled", help="Keep it, grant its tools to nobody, and take them back from open runs.")
    ] = False,
    refresh: Annotated[bool, typer.Option(help="Ask it for its tools at once.")] = True,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="The whole server in JSON; - reads standard input.")
    ] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create or replace a tool server, and ask it for its tools.

    Secrets are written, never shown. Left out, the stored ones stay, as long
    as the address does. Options win over the file.
    """
    from runhost.cli.documents import object_from_file, validated
    from runhost.client import ToolServerRequest

    fields: dict[str, Any] = object_from_file(file, "--file") if file is not None else {}
    fields |= _address(url, command)
    if no_secrets:
        fields |= {"headers": None, "env": None}
    sent = secrets_by_name(headers or [], "--header")
    if bearer_env is not None:
        sent["Authorization"] = f"Bearer {secret_from_environment(bearer_env, '--bearer-env')}"
    if sent:
        fields["headers"] = sent
    if env:
        fields["env"] = secrets_by_name(env, "--env")
    if disabled:
        fields["enabled"] = False
    if "transport" not in fields:
        raise typer.BadParameter("say where it is: --url, a program behind --, or --file")
    server = validated(ToolServerRequest, fields)

    async def work(client: "RunhostClient") -> None:
        put = await client.put_tool_server(server_id, server)
        if not as_json:
            note(f"Tool server {put.server_id} is at {put.url or ' '.join(put.command)}.")
        if refresh and put.enabled:
            await _refresh(client, server_id, as_json=as_json)
        elif as_json:
            write_json(put.model_dump(mode="json"))

    talk(api, key, work)


@app.command("refresh", epilog=examples("runhost tools servers refresh search"))
def refresh_command(server_id: ServerId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Ask a tool server for its tools; one that does not answer keeps those that it told last."""
    talk(api, key, lambda client: _refresh(client, server_id, as_json=as_json))


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the tool servers."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_tool_servers(limit=size, cursor=cursor),
        columns=("server", "address", "enabled", "stale", "refreshed (UTC)", "last error"),
        row=lambda server: (
            server.server_id,
            server.url or " ".join(server.command),
            server.enabled,
            "yes" if server.is_stale else None,
            server.refreshed_at,
            server.last_error,
        ),
        empty="There is no tool server yet. `runhost tools servers put` registers one.",
    )


@app.command("show", epilog=examples("runhost tools servers show search"))
def show_command(server_id: ServerId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Show a tool server, all but the values of its headers and variables."""
    show_entry((api, key), as_json, lambda client: client.get_tool_server(server_id))


@app.command("delete", epilog=examples("runhost tools servers delete search"))
def delete_command(server_id: ServerId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Delete a tool server with its tools, and take these back from open runs."""
    end_entry((api, key), as_json, f"Tool server {server_id}", lambda client: client.delete_tool_server(server_id))


def _address(url: str | None, command: list[str] | None) -> dict[str, Any]:
    if url is not None and command:
        raise typer.BadParameter("a server has a --url or a program, not both")
    if url is not None:
        return {"transport": "streamable_http", "url": url}
    return {"transport": "stdio", "command": command} if command else {}


async def _refresh(client: "RunhostClient", server_id: str, *, as_json: bool) -> None:
    tools = (await client.refresh_tool_server(server_id)).items
    if as_json:
        for tool in tools:
            write_json(tool.model_dump(mode="json"))
    else:
        named = ", ".join(tool.tool_name for tool in tools[:NAMED_TOOLS]) or "none"
        more = ", ... `runhost tools list` has all of them" if len(tools) > NAMED_TOOLS else ""
        note(f"It offers {len(tools)} tools: {named}{more}.")
