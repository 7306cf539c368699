"""`runhost models`: models that agents can be granted."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import note, write_json
from runhost.cli.registry_commands import end_entry, secret_from_environment, secret_from_input, show_entry, show_list

if TYPE_CHECKING:
    from runhost.client import RunhostClient

ModelId = Annotated[str, typer.Argument(metavar="MODEL_ID", help="Id of the model, of your choice.")]

app = typer.Typer(no_args_is_help=True, help="Models that agents can be granted.")


@app.command(
    "put",
    epilog=examples(
        "runhost models put gpt-4o --base-url https://api.openai.com/v1 --api-key-env OPENAI_API_KEY",
        "pass show rerank | runhost models put rank --type rerank --base-url https://ranks.example/v1 --api-key-stdin",
        "runhost models put small --base-url http://127.0.0.1:8000/v1 --default-args '{\"temperature\": 0}'",
    ),
)
def put_command(
    model_id: ModelId,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of an interface compatible with OpenAI's.")
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="What the provider calls it; the id if left out.")] = None,
    name: Annotated[str | None, typer.Option(help="Name for people; the id if left out.")] = None,
    model_type: Annotated[str | None, typer.Option("--type", help="llm or rerank.")] = None,
    context_window: Annotated[int | None, typer.Option(metavar="TOKENS", help="Size of its context window.")] = None,
    default_args: Annotated[
        str | None, typer.Option(metavar="JSON", help="Arguments of every call, a JSON object.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="Longest that a call may take.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Environment variable that holds the provider's key.")
    ] = None,
    api_key_stdin: Annotated[
        bool, typer.Option("--api-key-stdin", help="Read the provider's key from standard input.")
    ] = False,
    no_api_key: Annotated[bool, typer.Option("--no-api-key", help="Forget the key that is stored.")] = False,
    disabled: Annotated[
        bool, typer.Option("--disabled", help="Keep it, grant it to nobody, and take it back from open runs.")
    ] = False,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="The whole model in JSON; - reads standard input.")
    ] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create or replace a model.

    The key is written, never shown. Without one of its options the stored
    key stays, as long as the address does. Options win over the file.
    """
    from runhost.cli.documents import object_from_file, object_from_text, validated
    from runhost.client import ModelRequest

    if sum((api_key_env is not None, api_key_stdin, no_api_key)) > 1:
        raise typer.BadParameter("one of --api-key-env, --api-key-stdin and --no-api-key at most")
    if api_key_stdin and file == "-":
        raise typer.BadParameter("standard input cannot be both the key and the file", param_hint="--file")
    fields: dict[str, Any] = object_from_file(file, "--file") if file is not None else {}
    options: dict[str, Any] = {
        "base_url": base_url,
        "model_name": model_name,
        "name": name,
        "model_type": model_type,
        "context_window_tokens": context_window,
        "default_args": None if default_args is None else object_from_text(default_args, "--default-args"),
        "timeout_seconds": timeout,
        "enabled": False if disabled else None,
        "api_key": None if api_key_env is None else secret_from_environment(api_key_env, "--api-key-env"),
    }
    fields |= {field: value for field, value in options.items() if value is not None}
    if api_key_stdin:
        fields["api_key"] = secret_from_input("--api-key-stdin")
    if no_api_key:
        fields["api_key"] = None
    if "base_url" not in fields:
        raise typer.BadParameter("say where it is: --base-url, or base_url in --file")
    model = validated(ModelRequest, fields)

    async def command(client: "RunhostClient") -> None:
        put = await client.put_model(model_id, model)
        if as_json:
            write_json(put.model_dump(mode="json"))
        else:
            keyed = "with a key" if put.has_api_key else "without a key"
            note(f"Model {put.model_id} is {put.model_name} at {put.base_url}, {keyed}.")

    talk(api, key, command)


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the models."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_models(limit=size, cursor=cursor),
        columns=("model", "type", "name at the provider", "address", "key", "enabled"),
        row=lambda model: (
            model.model_id,
            model.model_type,
            model.model_name,
            model.base_url,
            "yes" if model.has_api_key else None,
            model.enabled,
        ),
        empty="There is no model yet. `runhost models put` makes one.",
    )


@app.command("show", epilog=examples("runhost models show gpt-4o"))
def show_command(model_id: ModelId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Show a model, all but its key."""
    show_entry((api, key), as_json, lambda client: client.get_model(model_id))


@app.command("delete", epilog=examples("runhost models delete gpt-4o"))
def delete_command(model_id: ModelId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Delete a model and take it back from open runs."""
    end_entry((api, key), as_json, f"Model {model_id}", lambda client: client.delete_model(model_id))
