"""Content that must not stand in the event log or the transcript, and text cut to their limits (HOST 9.3)."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any

from runhost.protocol import AgentInput, ContentElement, Message

SUMMARY_CHARACTERS = 1_000
TRANSCRIPT_CHARACTERS = 4_000
_INLINE = {"image_base64": "image", "file_base64": "file"}


@dataclass(frozen=True)
class InlineContent:
    """Bytes that came inside an input, to be kept as an artifact."""

    artifact_type: str
    content: bytes
    name: str | None
    mime_type: str | None

    @property
    def sha256(self) -> str:
        """The content's digest, in hex."""
        return hashlib.sha256(self.content).hexdigest()


def cut(text: str, characters: int) -> str:
    """Return ``text``, at most ``characters`` long; a cut shows as three dots."""
    return text if len(text) <= characters else text[: characters - 3] + "..."


def redact_elements(elements: list[ContentElement]) -> list[dict[str, Any]]:
    """Return the elements as JSON, inline base64 replaced by a mark (PM-13)."""
    return [_redact(element.model_dump(mode="json", exclude_none=True)) for element in elements]


def redact_message(message: Message) -> dict[str, Any]:
    """Return a message as JSON, inline base64 replaced by a mark."""
    dumped = message.model_dump(mode="json", exclude_none=True)
    if isinstance(message.content, list):
        dumped["content"] = redact_elements(message.content)
    return dumped


def text_of(message: Message) -> str:
    """Return what a person reads of a message: its text, parts joined by a space."""
    if isinstance(message.content, list):
        return " ".join(element.text for element in message.content if element.text)
    return message.content or ""


def input_text(input_: AgentInput) -> str:
    """Return what a person reads of an input."""
    if input_.text:
        return input_.text
    return " ".join(element.text for element in input_.contents if element.text)


def inline_contents(input_: AgentInput) -> list[InlineContent]:
    """Return the bytes that an input brought along (H-F8). What is not base64 is not content and left out."""
    found: list[InlineContent] = []
    for element in input_.contents:
        if element.type not in _INLINE:
            continue
        encoded = element.image_base64 or element.file_base64 or ""
        mime_type = None
        if encoded.startswith("data:"):
            head, _, encoded = encoded.partition(",")
            mime_type = head.removeprefix("data:").partition(";")[0] or None
        try:
            content = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            continue
        if content:
            found.append(InlineContent(_INLINE[element.type], content, element.file_name, mime_type))
    return found


def _redact(element: dict[str, Any]) -> dict[str, Any]:
    key = next((name for name in _INLINE if name in element), None)
    return element if key is None else {**element, key: None, "content_redacted": True}
