"""JSON on its way into and out of jsonb columns.

`dumps` is on the path of every ledger row. The common case is one call of orjson and two substring checks;
only text that PostgreSQL cannot hold (`stores.escaping`) is walked in Python.
"""

import hashlib
from collections.abc import Callable

import orjson

from runhost.protocol import JsonValue
from stores.escaping import MARKER, MARKER_UTF8, escape, restore

_NUL = rb"\u0000"


def dumps(value: JsonValue) -> str:
    """Return JSON text for a jsonb column.

    ``value`` must have passed the protocol's checks: finite numbers, integers of at most 64 bits, text keys.

    Raises:
        TypeError: For anything else; a bug of the caller, since every edge validates.
    """
    try:
        encoded = orjson.dumps(value)
    except TypeError:
        # A lone surrogate, which is not UTF-8. Anything else fails again below.
        return orjson.dumps(_map_text(value, escape)).decode()
    if _NUL in encoded or MARKER_UTF8 in encoded:
        return orjson.dumps(_map_text(value, escape)).decode()
    return encoded.decode()


def loads(text: str | bytes) -> JsonValue:
    """Return the value behind the text of a jsonb column."""
    value: JsonValue = orjson.loads(text)
    escaped = MARKER_UTF8 in text if isinstance(text, bytes) else MARKER in text
    return _map_text(value, restore) if escaped else value


def encoded_size(value: JsonValue) -> int:
    """Return the size of ``value`` as JSON, in bytes of UTF-8; what all size limits count."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return len(dumps(value).encode())


def digest(value: JsonValue) -> bytes:
    """Return the SHA-256 of ``value``'s canonical JSON: the same for equal values, whatever their key order."""
    try:
        canonical = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        canonical = orjson.dumps(_map_text(value, escape), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).digest()


def _map_text(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_text(item, change) for item in value]
    return value
