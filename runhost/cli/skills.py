"""`runhost skills`: instructions that agents can be granted to activate."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import note, plain, write_json
from runhost.cli.registry_commands import end_entry, show_list

if TYPE_CHECKING:
    from runhost.client import RunhostClient

SkillName = Annotated[str, typer.Argument(metavar="SKILL", help="Name of the skill, of your choice.")]

app = typer.Typer(no_args_is_help=True, help="Skills: instructions that agents can be granted to activate.")


@app.command(
    "put",
    epilog=examples('runhost skills put review SKILL.md --description "Reviews a change."', "runhost skills put x -"),
)
def put_command(
    skill_name: SkillName,
    path: Annotated[str, typer.Argument(metavar="PATH", help="File with the instructions; - reads standard input.")],
    display_name: Annotated[str | None, typer.Option(help="Name for people.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for, for people and models.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create or replace a skill."""
    from runhost.cli.documents import text_from_file, validated
    from runhost.client import SkillRequest

    fields: dict[str, Any] = {
        "instructions": text_from_file(path, "PATH"),
        "display_name": display_name,
        "description": description,
    }
    skill = validated(SkillRequest, fields)

    async def command(client: "RunhostClient") -> None:
        put = await client.put_skill(skill_name, skill)
        if as_json:
            write_json(put.model_dump(mode="json"))
        else:
            note(f"Skill {put.skill_name} has instructions of {len(put.instructions)} characters.")

    talk(api, key, command)


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the skills."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_skills(limit=size, cursor=cursor),
        columns=("skill", "name", "changed (UTC)", "digest", "what it is for"),
        row=lambda skill: (
            skill.skill_name,
            skill.display_name,
            skill.updated_at,
            skill.sha256[:12],
            skill.description,
        ),
        empty="There is no skill yet. `runhost skills put` makes one.",
    )


@app.command("show", epilog=examples("runhost skills show review"))
def show_command(skill_name: SkillName, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Show the instructions of a skill, which `skills put` takes."""

    async def command(client: "RunhostClient") -> None:
        skill = await client.get_skill(skill_name)
        if as_json:
            write_json(skill.model_dump(mode="json"))
            return
        about = ": ".join(text for text in (skill.display_name, skill.description) if text)
        note(f"Skill {skill.skill_name}, of {skill.updated_at:%Y-%m-%d %H:%M:%S} UTC{about and f', {about}'}")
        typer.echo(plain(skill.instructions))

    talk(api, key, command)


@app.command("delete", epilog=examples("runhost skills delete review"))
def delete_command(skill_name: SkillName, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Delete a skill and take it back from open runs."""
    end_entry((api, key), as_json, f"Skill {skill_name}", lambda client: client.delete_skill(skill_name))
