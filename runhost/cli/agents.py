"""`runhost agents`: what to run, under which policies."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import cell, new_table, note, results, write_json
from runhost.cli.paging import read_items

if TYPE_CHECKING:
    from runhost.client import RunhostClient

AgentId = Annotated[str, typer.Argument(metavar="AGENT_ID", help="Id of the agent, of your choice.")]

app = typer.Typer(no_args_is_help=True, help="Agents: what to run, under which policies.")


@app.command(
    "put",
    epilog=examples(
        "runhost agents put echo --runner plugin:runhost/scripted/default",
        "runhost agents put helper --runner plugin:runhost/openai-chat/default "
        '--config \'{"base_url": "https://api.openai.com/v1", "model": "gpt-4o", "api_key_env": "OPENAI_API_KEY"}\'',
        "runhost agents put helper --file agent.json",
    ),
)
def put_command(
    agent_id: AgentId,
    runner: Annotated[str | None, typer.Option(help="Runner, as `runhost runners` shows it.")] = None,
    config: Annotated[str | None, typer.Option(metavar="JSON", help="Config of the runner, a JSON object.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="The whole agent in JSON; - reads standard input.")
    ] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create an agent, or make this its next version.

    Runs keep the version that they started with. Options win over the file.
    """
    from runhost.cli.documents import object_from_file, object_from_text, validated
    from runhost.protocol import AgentConfig

    fields: dict[str, Any] = object_from_file(file, "--file") if file is not None else {}
    if runner is not None:
        fields["runner_id"] = runner
    if config is not None:
        fields["runner_config"] = object_from_text(config, "--config")
    if "runner_id" not in fields:
        raise typer.BadParameter("say which runner: --runner, or runner_id in --file")
    agent = validated(AgentConfig, fields)

    async def command(client: "RunhostClient") -> None:
        put = await client.put_agent(agent_id, agent)
        if as_json:
            write_json(put.model_dump(mode="json"))
        else:
            note(f"Agent {put.agent_id} is at version {put.version}. `runhost bindings put` leads events to it.")

    talk(api, key, command)


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the agents in their current versions."""

    async def command(client: "RunhostClient") -> None:
        agents = await read_items(lambda size, cursor: client.list_agents(limit=size, cursor=cursor))
        if as_json:
            for agent in agents:
                write_json(agent.model_dump(mode="json"))
        elif agents:
            table = new_table("agent", "version", "runner", "events", "enabled", "since (UTC)")
            for agent in agents:
                config = agent.config
                events = ", ".join(config.event_types)
                cells = (agent.version, config.runner_id, events, config.enabled, agent.created_at)
                table.add_row(cell(agent.agent_id), *map(cell, cells))
            results().print(table)
        else:
            note("There is no agent yet. `runhost agents put` makes one.")

    talk(api, key, command)


@app.command("show", epilog=examples("runhost agents show helper"))
def show_command(agent_id: AgentId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Show the current version of an agent; its config is JSON that `agents put --file` takes."""

    async def command(client: "RunhostClient") -> None:
        agent = await client.get_agent(agent_id)
        if as_json:
            write_json(agent.model_dump(mode="json"))
            return
        note(f"Agent {agent.agent_id}, version {agent.version}, since {agent.created_at:%Y-%m-%d %H:%M:%S} UTC")
        results().print_json(data=agent.config.model_dump(mode="json"))

    talk(api, key, command)
