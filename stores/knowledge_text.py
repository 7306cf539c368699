"""The text of a document that was uploaded, for the passages that are cut from it.

The bytes themselves are kept as they came; what is made here is only searched.
"""

import html
import json
import re
from typing import Final

MAX_DOCUMENT_BYTES: Final = 10 * 1024 * 1024

ACCEPTED_TYPES: Final = ("application/json", "text/html", "text/markdown", "text/plain")

# The standard library's parser takes time by the square of what is left open: hours for 10 MiB that are made for it.
# Here each match ends with what it began, or with the text, or before the next tag.
_MARKUP = re.compile(
    r"""
    <!--.*?(?:-->|\Z)
    | <(?P<unread>noscript|script|style|svg|template)\b[^<>]*>.*?(?:</(?P=unread)\s*>|\Z)
    | </?(?P<tag>[a-z][a-z0-9-]*)(?:[^<>"']|"[^"<]*"|'[^'<]*')*+>
    | <[!?][^<>]*>
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "cite", "code", "em", "i", "kbd", "mark", "q", "rp", "rt", "ruby", "s", "small", "span"}
    | {"strong", "sub", "sup", "time", "u", "var", "wbr"}
)


class DocumentRefused(ValueError):
    """A document that cannot be taken; says why and what to do.

    Attributes:
        field: What is at fault: `Content-Type` or `body`.
    """

    field = "body"


class UnsupportedType(DocumentRefused):
    """Of a type that has no text to search."""

    field = "Content-Type"


class UnreadableText(DocumentRefused):
    """Not what its type says."""


class DocumentTooLarge(DocumentRefused):
    """More bytes or passages than a document may have."""


def read_text(content: bytes, mime_type: str) -> str:
    """Return the text of a document; blocking, up to a second for 10 MiB.

    Args:
        content: UTF-8, with or without a byte order mark.
        mime_type: One of `ACCEPTED_TYPES`; parameters behind it are ignored.

    Raises:
        DocumentTooLarge: It exceeds `MAX_DOCUMENT_BYTES`.
        UnreadableText: It is no UTF-8, or no JSON where it should be.
        UnsupportedType: It is of no accepted type.
    """
    if mime_type not in ACCEPTED_TYPES:
        raise UnsupportedType(f"{mime_type!r} is not accepted; send one of {', '.join(ACCEPTED_TYPES)}, in UTF-8")
    if len(content) > MAX_DOCUMENT_BYTES:
        raise DocumentTooLarge(f"{len(content)} bytes are more than {MAX_DOCUMENT_BYTES}; split the document")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableText(f"no UTF-8 at byte {error.start}; convert the document") from None
    if mime_type == "text/html":
        return _html_text(text)
    if mime_type == "application/json":
        return _json_text(text)
    return text


def _json_text(text: str) -> str:
    """Write JSON with a line for each value, and its letters instead of escapes."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    except json.JSONDecodeError as error:
        raise UnreadableText(f"no JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        raise UnreadableText("no JSON that can be read: a number or the nesting is too large") from None


def _html_text(text: str) -> str:
    """Return what a page shows, with an empty line between blocks."""
    # A form feed, since line breaks within a block are only spaces in HTML.
    shown = _MARKUP.sub(lambda match: "" if (match["tag"] or "").lower() in _INLINE else "\f", text)
    try:
        shown = html.unescape(shown)
    except ValueError:
        raise UnreadableText("no HTML that can be read: a character has a number of thousands of digits") from None
    lines = (" ".join(line.split()) for line in shown.split("\f"))
    return "\n\n".join(line for line in lines if line)
