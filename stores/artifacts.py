"""Artifacts: metadata, and content up to 2 MiB kept once per workspace and digest (D-54)."""

from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from runhost.protocol import AgentEventEnvelope, ArtifactMetadata, ArtifactRef
from stores.errors import ArtifactConflict, ArtifactNotFound
from stores.identifiers import new_uuid
from stores.redaction import InlineContent
from stores.tables import artifact, artifact_blob
from stores.times import to_epoch


class ArtifactStore:
    """Artifacts of one workspace."""

    def __init__(self, connection: AsyncConnection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id

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
                storage_type="blob",
                bot_id=envelope.bot_id,
                conversation_id=envelope.conversation_id,
                thread_id=envelope.thread_id,
                run_id=run_id,
                runner_id=runner_id,
                metadata={"input_attachment": True},
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
        content = await self._connection.scalar(
            select(func.substring(artifact_blob.c.content, offset + 1, length))
            .select_from(artifact)
            .join(
                artifact_blob,
                (artifact_blob.c.workspace_id == artifact.c.workspace_id)
                & (artifact_blob.c.sha256 == artifact.c.sha256),
            )
            .where(self._alive(artifact_id))
        )
        if content is None:
            raise ArtifactNotFound(f"Artifact {artifact_id!r} has no content here.")
        return content

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
