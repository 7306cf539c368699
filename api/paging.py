"""Lists in pages: a limit, a signed cursor, and no counting (API.md)."""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field

from api.encoding import Document
from stores.cursors import CursorSigner, InvalidCursor

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

Item = TypeVar("Item")
Position = TypeVar("Position", str, int)


class PageQuery(BaseModel):
    """How a list is paged. Routes add their filters; an unknown one is refused."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, description="Items in a page; more than 200 are 200.")] = DEFAULT_LIMIT
    cursor: Annotated[
        str | None, Field(max_length=1_000, description="`next_cursor` of the page before, with the same filters.")
    ] = None

    @property
    def size(self) -> int:
        """How many items the page has at most."""
        return min(self.limit, MAX_LIMIT)

    def list_name(self, kind: str, workspace_id: str, **more: str | None) -> str:
        """Name the list that this query describes, for its cursors: what it holds, not how it is cut."""
        filters = self.model_dump(mode="json", exclude={"limit", "cursor"})
        return orjson.dumps([kind, workspace_id, filters | more], option=orjson.OPT_SORT_KEYS).decode()


class Page(BaseModel, Generic[Item]):
    """A page of a list; `next_cursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None
    has_more: bool


class Pager(Generic[Position]):
    """Pages one list.

    Args:
        cursors: Signs and reads cursors.
        list_name: Which list; a cursor of another one is refused.
        kind: Type of a position.
    """

    def __init__(self, cursors: CursorSigner, list_name: str, kind: type[Position]) -> None:
        self._cursors = cursors
        self._list_name = list_name
        self._kind = kind

    def position(self, query: PageQuery) -> Position | None:
        """Return where the page starts, None for the beginning of the list.

        Raises:
            InvalidCursor: The cursor is not of this list.
        """
        if query.cursor is None:
            return None
        position = self._cursors.read(self._list_name, query.cursor)
        if not isinstance(position, self._kind):
            raise InvalidCursor("it belongs to another query, or was changed")
        return position

    def cursor(self, position: Position) -> str:
        """Return the cursor of a position."""
        return self._cursors.sign(self._list_name, position)

    def page(
        self,
        found: Sequence[Item],
        size: int,
        *,
        read: Callable[[Item], Document],
        position_of: Callable[[Item], Position],
    ) -> Document:
        """Return the document of a page. ``found`` has one item more than ``size`` where there are more."""
        items = found[:size]
        has_more = len(found) > size
        return {
            "items": [read(item) for item in items],
            "next_cursor": self.cursor(position_of(items[-1])) if has_more else None,
            "has_more": has_more,
        }
