"""Bytes on their way out: headers, ranges, and what the client has already (RFC 9110)."""

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Depends, Header

from api.problems import Problem
from api.ranges import ByteRange, Unsatisfiable, requested_range
from api.routes.responses import problems
from runhost.protocol import ErrorCode

UNKNOWN_TYPE: Final = "application/octet-stream"

DOWNLOAD_RESPONSES: Final = {
    200: {"description": "The bytes, as the type that they came as.", "content": {"*/*": {}}},
    206: {"description": "The part asked for.", "content": {"*/*": {}}},
    304: {"description": "The client has these bytes."},
    **problems(404, 416),
}
"""How a route that gives bytes is described."""


@dataclass(frozen=True)
class Wanted:
    """What of some bytes a request wants."""

    range: str | None
    if_range: str | None
    if_none_match: str | None


async def _wanted(
    range_: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
    if_range: Annotated[str | None, Header()] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Wanted:
    return Wanted(range_, if_range, if_none_match)


DownloadHeaders = Annotated[Wanted, Depends(_wanted)]


@dataclass(frozen=True)
class Download:
    """Bytes that somebody sent, to be given to somebody.

    Attributes:
        name: File name.
        mime_type: What they are said to be.
        size_bytes: How many.
        sha256: Their digest, in hex.
    """

    name: str
    mime_type: str | None
    size_bytes: int
    sha256: str | None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every answer."""
        name = quote(self.name.encode("utf-8", "replace"), safe="")
        return {
            "ETag": f'"{self.sha256}"',
            "Accept-Ranges": "bytes",
            # What a runner or a person sent is never shown as a page of ours.
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private",
        }

    def is_known(self, wanted: Wanted) -> bool:
        """Say whether the client has these bytes already."""
        known = wanted.if_none_match
        return known is not None and self.headers["ETag"] in {tag.strip() for tag in known.split(",")}

    def part(self, wanted: Wanted) -> ByteRange | None:
        """Return the part that is wanted, None for all of it.

        Raises:
            Problem: 416, the part is not there.
        """
        # A range of other bytes than the client has is of no use to it.
        if wanted.if_range not in {None, self.headers["ETag"]}:
            return None
        try:
            return requested_range(wanted.range, self.size_bytes)
        except Unsatisfiable:
            raise Problem(
                416,
                ErrorCode.INVALID_ARGUMENT,
                f"Range: the content has {self.size_bytes} bytes; ask for some of them.",
                headers={"Content-Range": f"bytes */{self.size_bytes}"},
            ) from None

    def headers_of(self, part: ByteRange | None) -> dict[str, str]:
        """Return the headers of an answer with this part, or with all."""
        headers = self.headers | {"Content-Type": self._content_type}
        if part is None:
            return headers | {"Content-Length": str(self.size_bytes)}
        return headers | {
            "Content-Length": str(part.length),
            "Content-Range": f"bytes {part.start}-{part.end - 1}/{self.size_bytes}",
        }

    @property
    def _content_type(self) -> str:
        """The type as far as it can stand in a header."""
        named = self.mime_type or UNKNOWN_TYPE
        return named if named.isascii() and named.isprintable() else UNKNOWN_TYPE
