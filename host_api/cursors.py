"""Cursors in parameters."""

from collections.abc import Callable

from host_api.errors import invalid_argument
from stores.cursors import InvalidCursor


def position_behind(field: str, cursor: str | None, read: Callable[[str], int], otherwise: int) -> int:
    """Return the position behind a cursor, ``otherwise`` where none was given.

    Args:
        field: The parameter that holds it.
        cursor: What was given.
        read: Reads cursors of the list that is paged.
        otherwise: The end of that list.

    Raises:
        HostCallError: `invalid_argument`: the cursor is of another list, made up, or changed.
    """
    if cursor is None:
        return otherwise
    try:
        return read(cursor)
    except InvalidCursor as error:
        raise invalid_argument(field, f"{error}; take it from an item or a page of this conversation.") from None
