"""Text that jsonb and text columns cannot hold, stored exactly all the same (D-31).

PostgreSQL refuses NUL in any text and lone surrogates in jsonb. Both are written as a marker and four hex
digits on the way in and restored on the way out, so a reader gets back what was sent. The marker is the
Unicode noncharacter U+FDD0, which is reserved for internal use; where it occurs in the text itself, it is
escaped in the same way.
"""

import re

MARKER = "\ufdd0"
MARKER_UTF8 = MARKER.encode()

_UNSTORABLE = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile(MARKER + "([0-9a-f]{4})")


def escape(text: str) -> str:
    """Return ``text`` in the form that PostgreSQL stores; unchanged (the same object) where nothing is to do."""
    if not _UNSTORABLE.search(text):
        return text
    return _UNSTORABLE.sub(lambda match: f"{MARKER}{ord(match.group()):04x}", text)


def restore(text: str) -> str:
    """Undo `escape`."""
    if MARKER not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), text)
