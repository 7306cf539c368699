"""Lists that come in pages, read as one."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

MAX_PAGE_SIZE = 200
# More is for programs, which page by themselves.
MAX_ITEMS = 10_000

Item = TypeVar("Item")


class SomeItems(Protocol[Item]):
    """A page of the API."""

    @property
    def items(self) -> list[Item]:
        """The items of the page."""
        ...

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether there is a next page now."""
        ...


async def read_items(
    fetch: Callable[[int, str | None], Awaitable[SomeItems[Item]]], limit: int = MAX_ITEMS
) -> list[Item]:
    """Read a list page by page, at most ``limit`` items.

    Args:
        fetch: Reads a page of so many items from a cursor on.
        limit: Where to stop.
    """
    found: list[Item] = []
    cursor, has_more = None, True
    while has_more and len(found) < limit:
        page = await fetch(min(limit - len(found), MAX_PAGE_SIZE), cursor)
        found += page.items
        cursor, has_more = page.next_cursor, page.has_more
    return found
