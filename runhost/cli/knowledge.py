"""`runhost knowledge`: bases of documents that runs can ask."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runhost.cli.host import EXIT_CODES, ApiKey, ApiUrl, AsJson, examples, talk
from runhost.cli.output import note, one_line, plain, results, write_json
from runhost.cli.registry_commands import end_entry, show_entry, show_list

if TYPE_CHECKING:
    from runhost.client import RunhostClient

BaseId = Annotated[str, typer.Argument(metavar="KB_ID", help="Id of the knowledge base, of your choice; no slash.")]

app = typer.Typer(no_args_is_help=True, help="Knowledge bases: documents that runs can ask.")


@app.command("put", epilog=examples('runhost knowledge put handbook --description "How we work"'))
def put_command(
    kb_id: BaseId,
    name: Annotated[str | None, typer.Option(help="Its name; else its id.")] = None,
    description: Annotated[str | None, typer.Option(help="What it knows, for people and models.")] = None,
    passage: Annotated[int, typer.Option(help="Most characters of a passage, 200 to 4000.")] = 800,
    overlap: Annotated[int, typer.Option(help="Characters that neighbouring passages share.")] = 100,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create a knowledge base, or change it. Its documents stay."""
    from runhost.cli.documents import validated
    from runhost.client import KnowledgeBaseRequest

    config = {"passage_characters": passage, "overlap_characters": overlap}
    base = validated(KnowledgeBaseRequest, {"name": name, "description": description, "config": config})

    async def command(client: "RunhostClient") -> None:
        put = await client.put_knowledge_base(kb_id, base)
        if as_json:
            write_json(put.model_dump(mode="json"))
        else:
            note(f"Knowledge base {put.kb_id} is there. `runhost knowledge upload {put.kb_id} FOLDER` fills it.")

    talk(api, key, command)


@app.command("list", epilog=EXIT_CODES)
def list_command(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the knowledge bases."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_knowledge_bases(limit=size, cursor=cursor),
        columns=("base", "name", "kind", "description", "changed (UTC)"),
        row=lambda base: (base.kb_id, base.name, base.kb_type, base.description, base.updated_at),
        empty="There is no knowledge base yet. `runhost knowledge put` makes one.",
    )


@app.command("show", epilog=examples("runhost knowledge show handbook"))
def show_command(kb_id: BaseId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """Show a knowledge base."""
    show_entry((api, key), as_json, lambda client: client.get_knowledge_base(kb_id))


@app.command(
    "delete",
    epilog=examples("runhost knowledge delete handbook", "runhost knowledge delete handbook --document old.md"),
)
def delete_command(
    kb_id: BaseId,
    document: Annotated[str | None, typer.Option(metavar="ID", help="Delete this document alone.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Delete a knowledge base with its documents, or one document, and take it back from open runs."""
    if document is None:
        end_entry((api, key), as_json, f"Knowledge base {kb_id}", lambda client: client.delete_knowledge_base(kb_id))
    else:
        name = f"Document {document} of {kb_id}"
        end_entry((api, key), as_json, name, lambda client: client.delete_document(kb_id, document))


@app.command(
    "upload",
    epilog=examples(
        "runhost knowledge upload handbook docs/",
        'runhost knowledge upload handbook faq.md --metadata \'{"lang": "en"}\'',
    ),
)
def upload_command(
    kb_id: BaseId,
    path: Annotated[Path, typer.Argument(metavar="PATH", exists=True, help="A file, or a folder of them.")],
    metadata: Annotated[
        str | None, typer.Option(metavar="JSON", help="Kept with each document, for filters; a JSON object.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Begins the id of each document, which else is its path.")] = "",
    mime_type: Annotated[str | None, typer.Option("--type", help="Media type of a file that ends otherwise.")] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Upload text, Markdown, HTML or JSON in UTF-8; what is there already is left alone.

    Each document is done or not when this ends, by Ctrl-C too; the same command again does the rest.
    """
    from runhost.cli.documents import object_from_text
    from runhost.cli.knowledge_upload import Upload

    fields = object_from_text(metadata, "--metadata") if metadata is not None else {}
    upload = Upload(kb_id, path, prefix=prefix, mime_type=mime_type, metadata=fields, as_json=as_json)
    talk(api, key, upload.run)


@app.command("documents", epilog=examples("runhost knowledge documents handbook"))
def documents_command(kb_id: BaseId, api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the documents of a knowledge base."""
    show_list(
        (api, key),
        as_json,
        lambda client, size, cursor: client.list_documents(kb_id, limit=size, cursor=cursor),
        columns=("document", "name", "type", "bytes", "passages", "changed (UTC)"),
        row=lambda found: (
            found.document_id,
            found.name,
            found.mime_type,
            found.size_bytes,
            found.chunk_count,
            found.updated_at,
        ),
        empty=f"{kb_id} has no document yet. `runhost knowledge upload` brings some.",
    )


@app.command("ask", epilog=examples('runhost knowledge ask handbook "How long does a refund take?"'))
def ask_command(
    kb_id: BaseId,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question, or words, or a part of the text.")],
    top_k: Annotated[int, typer.Option("--top", min=1, max=100, help="Most passages to show.")] = 5,
    filters: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help="What the documents' metadata must contain.")
    ] = None,
    api: ApiUrl = None,
    key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show the passages that a run would get for a question, best first."""
    from runhost.cli.documents import object_from_text

    wanted = object_from_text(filters, "--filter") if filters is not None else None

    async def command(client: "RunhostClient") -> None:
        found = await client.retrieve_knowledge(kb_id, question, top_k=top_k, filters=wanted)
        for entry in found.items:
            if as_json:
                write_json(entry.model_dump(mode="json"))
                continue
            document = one_line(str(entry.metadata.get("document_id", entry.id)))
            results().print(f"{entry.score or 0:.2f}  {document}", style="bold")
            results().print(plain("\n".join(part.text for part in entry.content)), end="\n\n")
        if not found.items and not as_json:
            note(f"{kb_id} has nothing about this. `runhost knowledge documents {kb_id}` shows what it has.")

    talk(api, key, command)
