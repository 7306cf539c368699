"""Protocol models as our own routes give them: with RFC 3339 times (API.md)."""

from api.encoding import Document
from runhost.protocol import ArtifactMetadata, TranscriptItem
from stores.times import from_epoch


def read_artifact(artifact: ArtifactMetadata) -> Document:
    """Return the document of an artifact, an `ArtifactRead`."""
    times = {"created_at": from_epoch(artifact.created_at), "expires_at": from_epoch(artifact.expires_at)}
    return artifact.model_dump() | times


def read_item(item: TranscriptItem, cursor: str) -> Document:
    """Return the document of a transcript item, a `TranscriptItemRead`; ``cursor`` is its position."""
    return item.model_dump() | {"created_at": from_epoch(item.created_at), "cursor": cursor}
