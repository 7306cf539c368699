"""`runhost files`: files that agents' configs name."""

import mimetypes
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import EXIT_REFUSED, fail, note, write_json
from runhost.cli.registry_commands import end_entry, show_entry, show_list

if TYPE_CHECKING:
    from runhost.client import RunhostClient

FileKey = Annotated[str, typer.Argument(metavar="FILE_KEY", help="Key of the file, of your choice.")]

app = typer.Typer(no_args_is_help=True, help="Files that the configs of agents name.")


@app.command(
    "put",
    epilog=examples("runhost files put prices prices.csv", "runhost files put rules - --name rules.md < RULES.md"),
)
def put_command(
    file_key: FileKey,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file, at most 10 MiB; - reads standard input.")],
    name: Annotated[str | None, typer.Option(help="Its name; else that of PATH.")] = None,
    mime_type: Annotated[str | None, typer.Option("--type", help="Its media type; else by its name.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create or replace a file."""
    from runhost.cli.documents import MAX_FILE_BYTES, STANDARD_INPUT, bytes_from_file

    content = bytes_from_file(path, "PATH", MAX_FILE_BYTES)
    file_name = name or (None if path == STANDARD_INPUT else Path(path).name)
    guessed = mime_type or (mimetypes.guess_type(file_name)[0] if file_name else None)

    async def command(client: "RunhostClient") -> None:
        put = await client.put_file(file_key, content, file_name=file_name, mime_type=guessed)
        if as_json:
            write_json(put.model_dump(mode="json"))
        else:
            note(f"File {put.file_key} has {put.size_bytes} bytes of {put.mime_type or 'unknown type'}.")

    talk(api, key, command)


@app.command("get", epilog=examples("runhost files get prices --output prices.csv", "runhost files get rules | less"))
def get_command(
    file_key: FileKey,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Where to write it; else standard output.")
    ] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
) -> None:
    """Read the bytes of a file."""

    async def command(client: "RunhostClient") -> None:
        content = await client.read_file(file_key)
        if output is None:
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
            return
        try:
            output.write_bytes(content)
        except OSError as error:
            fail(EXIT_REFUSED, f"{str(output)!r} cannot be written: {error.strerror}.")
        note(f"{len(content)} bytes written to {output}.")

    talk(api, key, command)


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the files."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_files(limit=size, cursor=cursor),
        columns=("file", "name", "type", "bytes", "changed (UTC)", "digest"),
        row=lambda file: (
            file.file_key,
            file.file_name,
            file.mime_type,
            file.size_bytes,
            file.updated_at,
            file.sha256[:12],
        ),
        empty="There is no file yet. `runhost files put` makes one.",
    )


@app.command("show", epilog=examples("runhost files show prices"))
def show_command(file_key: FileKey, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Show what is known of a file; `files get` has its bytes."""
    show_entry((api, key), as_json, lambda client: client.get_file(file_key))


@app.command("delete", epilog=examples("runhost files delete prices"))
def delete_command(file_key: FileKey, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Delete a file and take it back from open runs."""
    end_entry((api, key), as_json, f"File {file_key}", lambda client: client.delete_file(file_key))
