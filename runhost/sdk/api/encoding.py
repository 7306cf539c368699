"""JSON and base64 as they travel between runner and host."""

import base64
import binascii
import json

from runhost.protocol import ArtifactReadResult, JsonValue
from runhost.protocol.host_api import FileContent
from runhost.sdk.api.errors import malformed_answer


def encode(value: JsonValue) -> bytes:
    """Return JSON in its shortest form, whose length is what the host's limits count (D-16)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # A lone surrogate is text that UTF-8 cannot carry; escaped, JSON can (D-31).
        return json.dumps(value, separators=(",", ":")).encode()


def decode_base64(method: str, text: str) -> bytes:
    """Return the bytes of an answer.

    Raises:
        AgentAPIException: `runtime_error`, it is no base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise malformed_answer(method, "the content is no base64") from None


def content_of(answer: FileContent | ArtifactReadResult) -> bytes:
    """Return the bytes that an answer of `get_file`, `artifact_read` or `artifact_read_range` carries.

    Raises:
        AgentAPIException: `runtime_error`, there are none: a part of an artifact whose content lies elsewhere
            has a `file_key` instead (PROTOCOL 9.10).
    """
    method = "get_file" if isinstance(answer, FileContent) else "artifact_read"
    if answer.content_base64 is None:
        raise malformed_answer(method, f"it has no content; the content lies elsewhere, file_key {answer.file_key!r}")
    return decode_base64(method, answer.content_base64)
