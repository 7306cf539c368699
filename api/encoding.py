"""JSON as it leaves the API."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson
from starlette.responses import Response

# Times are RFC 3339 in UTC, written with a Z (API.md).
_OPTIONS = orjson.OPT_UTC_Z

JSON_TYPE = "application/json"

Document: TypeAlias = dict[str, Any]
"""A JSON object that may hold times and ids still."""


def encode(value: object) -> bytes:
    """Return ``value`` as one line of JSON.

    Text that is not Unicode, a lone surrogate, is what a runner may have sent and what a reader gets back
    (D-31). It has no UTF-8, so such a document is written in ASCII with escapes.
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    """Turn a time or an id into the text that orjson makes of it; for anything else it raises TypeError."""
    return orjson.loads(orjson.dumps(value, option=_OPTIONS))


class JsonResponse(Response):
    """An answer in JSON."""

    media_type = JSON_TYPE

    def __init__(
        self,
        content: Any,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        super().__init__(content, status_code, headers, media_type)

    def render(self, content: Any) -> bytes:
        """Encode the document."""
        return encode(content)
