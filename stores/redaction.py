"""Content that must not stand in the event log or the transcript, and text cut to their limits (HOST 9.3)."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from runhost.protocol import AgentInput, ContentElement, Message

SUMMARY_CHARACTERS = 1_000
TRANSCRIPT_CHARACTERS = 4_000
_INLINE = {"image_base64": "image", "file_base64": "file"}
_ADDRESSES = ("image_url", "file_url")
_DATA_URL = "data:"


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


@dataclass(frozen=True)
class LinkedContent:
    """Bytes that are elsewhere, at an address that an input named."""

    artifact_type: str
    url: str
    name: str | None


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
    """Return the bytes that an input brought along, as base64 or in `data:` addresses (H-F8).

    What cannot be decoded is not content and left out.
    """
    found: list[InlineContent] = []
    for element in input_.contents:
        for artifact_type, encoded in _encoded_parts(element):
            mime_type, content = _decode(encoded)
            if content:
                found.append(InlineContent(artifact_type, content, element.file_name, mime_type))
    return found


def linked_contents(input_: AgentInput) -> list[LinkedContent]:
    """Return what an input has the address of, each address once (H-F8)."""
    found: dict[str, LinkedContent] = {}
    for element in input_.contents:
        for artifact_type, address in _addresses(element):
            if not _is_data_url(address):
                found.setdefault(address, LinkedContent(artifact_type, address, element.file_name))
    return list(found.values())


def _encoded_parts(element: ContentElement) -> Iterator[tuple[str, str]]:
    for name, artifact_type in _INLINE.items():
        encoded = getattr(element, name)
        if encoded is not None:
            yield artifact_type, encoded
    for artifact_type, address in _addresses(element):
        if _is_data_url(address):
            yield artifact_type, address


def _addresses(element: ContentElement) -> Iterator[tuple[str, str]]:
    if element.image_url is not None:
        yield "image", element.image_url.url
    if element.file_url is not None:
        yield "file", element.file_url


def _is_data_url(address: str) -> bool:
    return address.lstrip()[: len(_DATA_URL)].lower() == _DATA_URL


def _decode(encoded: str) -> tuple[str | None, bytes | None]:
    """Return media type and bytes of base64 or of a `data:` address, None for what is not there."""
    mime_type = None
    if _is_data_url(encoded):
        head, _, encoded = encoded.lstrip()[len(_DATA_URL) :].partition(",")
        mime_type, *parameters = head.split(";")
        if "base64" not in {parameter.strip().lower() for parameter in parameters}:
            return mime_type or None, unquote_to_bytes(encoded)
    try:
        return mime_type or None, base64.b64decode(encoded, validate=True)
    except ValueError:
        return None, None


def _redact(element: dict[str, Any]) -> dict[str, Any]:
    taken_out = {name: None for name in _INLINE if element.get(name) is not None}
    for name in _ADDRESSES:
        address = element.get(name)
        if address is not None and _is_data_url(address["url"] if isinstance(address, dict) else address):
            taken_out[name] = None
    return {**element, **taken_out, "content_redacted": True} if taken_out else element
