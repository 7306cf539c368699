"""Uploading files one after the other, with a line for each."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import typer

from runhost.cli.documents import MAX_FILE_BYTES, bytes_from_file
from runhost.cli.knowledge_files import TYPES, LocalDocument, local_documents
from runhost.cli.output import EXIT_REFUSED, note, write_json
from runhost.client import ApiProblem, DocumentUpload, RunhostClient
from runhost.protocol import JsonObject

# What is wrong with one document and says nothing of the next.
_OF_ONE_DOCUMENT = frozenset({413, 415, 422})


@dataclass(frozen=True, kw_only=True)
class _Progress:
    """Where an upload is."""

    number: int
    of: int
    document_id: str

    def tell(self, text: str) -> None:
        """Write the line of the document."""
        note(f"[{self.number}/{self.of}] {self.document_id}: {text}")


class Upload:
    """Uploads a file or a folder.

    Args:
        kb_id: The base.
        path: The file or folder.
        prefix: Begins the id of each document.
        mime_type: Of files whose name does not tell.
        metadata: Of each document.
        as_json: Write a receipt per document, for programs.
    """

    def __init__(
        self, kb_id: str, path: Path, *, prefix: str, mime_type: str | None, metadata: JsonObject, as_json: bool
    ) -> None:
        self._kb_id = kb_id
        self._path = path
        self._prefix = prefix
        self._mime_type = mime_type
        self._metadata = metadata
        self._as_json = as_json
        self._outcomes: Counter[str] = Counter()

    async def run(self, client: RunhostClient) -> None:
        """Upload everything; documents that are refused do not keep the others.

        Raises:
            typer.Exit: Some were refused.
        """
        documents = list(local_documents(self._path))
        for number, document in enumerate(documents, start=1):
            document_id = f"{self._prefix}{document.document_id}"
            progress = _Progress(number=number, of=len(documents), document_id=document_id)
            outcome = await self._upload(client, document, progress)
            self._outcomes[outcome] += 1
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self._outcomes.items())) or "nothing to do"
        note(f"{self._kb_id}: {told}.")
        if self._outcomes["refused"]:
            raise typer.Exit(EXIT_REFUSED)

    async def _upload(self, client: RunhostClient, document: LocalDocument, progress: _Progress) -> str:
        mime_type = document.mime_type or self._mime_type
        if mime_type is None:
            progress.tell(f"skipped, its name ends with none of {', '.join(TYPES)}; --type says what it is")
            return "skipped"
        try:
            content = bytes_from_file(str(document.path), "PATH", MAX_FILE_BYTES)
            upload = DocumentUpload(content=content, mime_type=mime_type, metadata=self._metadata)
            put = await client.put_document(self._kb_id, progress.document_id, upload)
        except typer.BadParameter as error:
            progress.tell(f"refused, {error.message}")
            return "refused"
        except ApiProblem as problem:
            if problem.status not in _OF_ONE_DOCUMENT:
                raise
            progress.tell(f"refused, {problem.detail}")
            return "refused"
        if self._as_json:
            write_json(put.model_dump(mode="json"))
        else:
            progress.tell(f"{put.outcome}, {put.chunk_count} passages")
        return put.outcome
