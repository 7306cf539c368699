"""Artifacts: what is known of them, and their bytes (PROTOCOL 9.6)."""

from typing import Final

from runhost.protocol import ArtifactMetadata, ArtifactReadResult
from runhost.protocol.host_api import DEFAULT_RANGE_BYTES, MAX_ARTIFACT_READ_BYTES
from runhost.sdk.api.calls import ProxyPart
from runhost.sdk.api.encoding import content_of
from runhost.sdk.api.errors import malformed_answer, too_large

DEFAULT_WHOLE_ARTIFACT_BYTES: Final = 64 * 1024 * 1024
"""Most that `read_artifact` holds in memory unless told otherwise."""


class ArtifactCalls(ProxyPart):
    """Calls for artifacts; see `AgentRunAPIProxy`. `results.artifact` makes new ones."""

    async def artifact_metadata(self, artifact_id: str) -> ArtifactMetadata:
        """Read what is known of an artifact. Needs the flag `artifact_metadata`."""
        self._grants.check_api("artifact_metadata")
        return await self._calls.call("artifact_metadata", ArtifactMetadata, artifact_id=artifact_id)

    async def artifact_read(self, artifact_id: str, offset: int = 0, limit: int | None = None) -> ArtifactReadResult:
        """Read bytes of an artifact; `content_of` decodes them. Needs the flag `artifact_read`.

        Args:
            artifact_id: The artifact.
            offset: First byte.
            limit: Bytes at most: 1 MiB without one, and the host caps at 10 MiB.
        """
        self._grants.check_api("artifact_read")
        return await self._calls.call(
            "artifact_read", ArtifactReadResult, artifact_id=artifact_id, offset=offset, limit=limit
        )

    async def artifact_read_range(
        self, artifact_id: str, offset: int = 0, length: int = DEFAULT_RANGE_BYTES
    ) -> ArtifactReadResult:
        """Read `length` bytes of an artifact from `offset`. Needs the flag `artifact_read`."""
        self._grants.check_api("artifact_read")
        return await self._calls.call(
            "artifact_read_range", ArtifactReadResult, artifact_id=artifact_id, offset=offset, length=length
        )

    async def read_artifact(self, artifact_id: str, *, max_bytes: int = DEFAULT_WHOLE_ARTIFACT_BYTES) -> bytes:
        """Read a whole artifact, in as many calls as it takes.

        Raises:
            AgentAPIException: `payload_too_large`, it holds more than `max_bytes`; and what `artifact_read`
                and `content_of` raise.
        """
        content = bytearray()
        while True:
            part = await self.artifact_read(artifact_id, len(content), MAX_ARTIFACT_READ_BYTES)
            piece = content_of(part)
            content += piece
            if max(len(content), part.size_bytes or 0) > max_bytes:
                raise too_large(f"artifact_id: artifact {artifact_id!r} holds more than {max_bytes} bytes.")
            if not part.has_more:
                return bytes(content)
            if not piece:
                raise malformed_answer("artifact_read", "there are more bytes, but none came")
