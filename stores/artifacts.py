"""Artifacts: metadata, and content up to 2 MiB kept once per workspace and digest (D-54)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentEventEnvelope, ArtifactMetadata, ArtifactRef
from stores.artifact_content import BLOB, FILE, PLATFORM_REF, URL, read_file
from stores.errors import ArtifactConflict, ArtifactNotFound
from stores.file_root import FileRefused, FileRoot
from stores.identifiers import new_uuid
from stores.redaction import InlineContent, LinkedContent
from stores.tables import artifact, artifact_blob
from stores.times import from_epoch, to_epoch

UNKNOWN_TYPE = "platform_attachment"


@dataclass(frozen=True)
class NewFile:
    """A file of the host that is to be an artifact.

    Attributes:
        path: Where it is; what is not absolute begins at the folder of files.
        source: `runner`, `tool` or `system`.
        name: File name for display.
        bot_id: Who may read it besides the run: its conversation, as far as these three tell one.
        conversation_id: See above.
        thread_id: See above.
        expires_at: When it stops being readable.
    """

    path: Path
    artifact_type: str
    source: str
    run_id: UUID
    runner_id: str
    mime_type: str | None = None
    name: str | None = None
    bot_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    expires_at: datetime | None = None


class ArtifactStore:
    """Artifacts of one workspace.

    Args:
        connection: The caller's, who owns the transaction.
        workspace_id: Artifacts of other workspaces do not exist here.
        files: Folder that file artifacts lie in; without one they have no content here.
    """

    def __init__(self, connection: AsyncConnection, workspace_id: str, files: FileRoot | None = None) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._files = files

    async def add_input(
        self, envelope: AgentEventEnvelope, inline: InlineContent, *, run_id: UUID, runner_id: str
    ) -> ArtifactRef:
        """Keep bytes that came inside an event (H-F8); they are an artifact of its run."""
        reference = ArtifactRef(
            artifact_id=str(new_uuid()),
            artifact_type=inline.artifact_type,
            mime_type=inline.mime_type,
            name=inline.name,
            size_bytes=len(inline.content),
            sha256=inline.sha256,
        )
        await self._connection.execute(
            insert(artifact_blob)
            .values(workspace_id=self._workspace_id, sha256=inline.sha256, content=inline.content)
            .on_conflict_do_nothing()
        )
        await self._connection.execute(
            insert(artifact).values(
                workspace_id=self._workspace_id,
                artifact_id=reference.artifact_id,
                artifact_type=inline.artifact_type,
                mime_type=inline.mime_type,
                name=inline.name,
                size_bytes=reference.size_bytes,
                sha256=inline.sha256,
                source="platform",
                storage_type=BLOB,
                bot_id=envelope.bot_id,
                conversation_id=envelope.conversation_id,
                thread_id=envelope.thread_id,
                run_id=run_id,
                runner_id=runner_id,
                metadata={"input_attachment": True},
            )
        )
        return reference

    async def add_links(
        self, envelope: AgentEventEnvelope, links: Sequence[LinkedContent], *, run_id: UUID, runner_id: str
    ) -> list[ArtifactRef]:
        """Note what an event has the address of, and what the platform keeps under an id of its own (H-F8).

        An id that is an artifact already stays what it is, whoever may read that. Returns references to the
        addresses; those of the platform came with the event.
        """
        references = [
            ArtifactRef(artifact_id=str(new_uuid()), artifact_type=link.artifact_type, name=link.name) for link in links
        ]
        rows = [
            _input_row(reference, URL, link.url, {"url": link.url})
            for reference, link in zip(references, links, strict=True)
        ]
        for attachment in envelope.input.attachments:
            key = attachment.artifact_id
            rows.append(_input_row(attachment, PLATFORM_REF, key, {"platform_ref_id": key}))
        if rows:
            owner = {
                "workspace_id": self._workspace_id,
                "bot_id": envelope.bot_id,
                "conversation_id": envelope.conversation_id,
                "thread_id": envelope.thread_id,
                "run_id": run_id,
                "runner_id": runner_id,
            }
            await self._connection.execute(insert(artifact).on_conflict_do_nothing(), [row | owner for row in rows])
        return references

    async def add_file(self, new: NewFile) -> ArtifactRef:
        """Register a file that the host has, where it is (H-F3); its content is digested, not copied.

        Raises:
            FileRefused: It is no regular file inside of the folder of files.
        """
        if self._files is None:
            raise FileRefused("no folder of files here")
        kept = await asyncio.to_thread(self._files.find, new.path)
        reference = ArtifactRef(
            artifact_id=str(new_uuid()),
            artifact_type=new.artifact_type,
            mime_type=new.mime_type,
            name=new.name,
            size_bytes=kept.size_bytes,
            sha256=kept.sha256,
        )
        await self._connection.execute(
            insert(artifact).values(
                **reference.model_dump(include={"artifact_id", "artifact_type", "mime_type", "name"}),
                workspace_id=self._workspace_id,
                size_bytes=kept.size_bytes,
                sha256=kept.sha256,
                source=new.source,
                storage_type=FILE,
                storage_key=kept.key,
                bot_id=new.bot_id,
                conversation_id=new.conversation_id,
                thread_id=new.thread_id,
                run_id=new.run_id,
                runner_id=new.runner_id,
                expires_at=new.expires_at,
            )
        )
        return reference

    async def get(self, artifact_id: str) -> ArtifactMetadata:
        """Return what is known of an artifact; never where it is kept (H-F4).

        Raises:
            ArtifactNotFound: There is none in this workspace, or it has expired (H-F5).
        """
        rows = await self._connection.execute(select(artifact).where(self._alive(artifact_id)))
        row = rows.mappings().one_or_none()
        if row is None:
            raise ArtifactNotFound(f"There is no artifact {artifact_id!r} in this workspace.")
        return _metadata(row)

    async def list_of_run(self, run_id: UUID, *, after: str = "", limit: int) -> list[ArtifactMetadata]:
        """Return the artifacts of a run that have not expired, in order of their ids, from behind ``after``."""
        rows = await self._connection.execute(
            select(artifact)
            .where(
                artifact.c.workspace_id == self._workspace_id,
                artifact.c.run_id == run_id,
                artifact.c.artifact_id > after,
                self._is_kept(),
            )
            .order_by(artifact.c.artifact_id)
            .limit(limit)
        )
        return [_metadata(row) for row in rows.mappings()]

    async def read(self, artifact_id: str, *, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end.

        Raises:
            ArtifactNotFound: As in `get`, or it has no content of its own.
        """
        rows = await self._connection.execute(
            select(
                artifact.c.storage_type,
                artifact.c.storage_key,
                artifact.c.size_bytes,
                func.substring(artifact_blob.c.content, offset + 1, length).label("content"),
            )
            .select_from(artifact)
            .outerjoin(
                artifact_blob,
                (artifact.c.storage_type == BLOB)
                & (artifact_blob.c.workspace_id == artifact.c.workspace_id)
                & (artifact_blob.c.sha256 == artifact.c.sha256),
            )
            .where(self._alive(artifact_id))
        )
        row = rows.one_or_none()
        if row is not None and row.storage_type == FILE:
            return await read_file(
                self._files, artifact_id, row.storage_key, offset=offset, length=length, size_bytes=row.size_bytes
            )
        if row is None or row.content is None:
            raise ArtifactNotFound(f"Artifact {artifact_id!r} has no content here.")
        return row.content

    async def is_known(self, artifact_id: str, sha256: str | None) -> bool:
        """Say whether the id stands for exactly this content already.

        Raises:
            ArtifactConflict: It stands for other content (F-23).
        """
        rows = await self._connection.execute(
            select(artifact.c.sha256).where(
                artifact.c.workspace_id == self._workspace_id, artifact.c.artifact_id == artifact_id
            )
        )
        row = rows.one_or_none()
        if row is None:
            return False
        if row.sha256 != sha256:
            raise ArtifactConflict(f"Artifact {artifact_id!r} exists with other content.")
        return True

    def _alive(self, artifact_id: str) -> Any:
        return (
            (artifact.c.workspace_id == self._workspace_id) & (artifact.c.artifact_id == artifact_id) & self._is_kept()
        )

    def _is_kept(self) -> Any:
        return or_(artifact.c.expires_at.is_(None), artifact.c.expires_at > func.now())


def _input_row(reference: ArtifactRef, storage_type: str, storage_key: str, facts: dict[str, str]) -> dict[str, object]:
    return {
        "artifact_id": reference.artifact_id,
        "artifact_type": reference.artifact_type or UNKNOWN_TYPE,
        "mime_type": reference.mime_type,
        "name": reference.name,
        "size_bytes": reference.size_bytes,
        "sha256": reference.sha256,
        "expires_at": from_epoch(reference.expires_at),
        "source": "platform",
        "storage_type": storage_type,
        "storage_key": storage_key,
        "metadata": {"input_attachment": True, **facts},
    }


def _metadata(row: RowMapping) -> ArtifactMetadata:
    return ArtifactMetadata(
        artifact_id=row["artifact_id"],
        artifact_type=row["artifact_type"],
        mime_type=row["mime_type"],
        name=row["name"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        source=row["source"],
        conversation_id=row["conversation_id"],
        run_id=str(row["run_id"]) if row["run_id"] else None,
        runner_id=row["runner_id"],
        created_at=to_epoch(row["created_at"]),
        expires_at=to_epoch(row["expires_at"]),
        metadata=row["metadata"],
    )
