"""Telling a database that cannot be reached from a statement that is wrong."""

import asyncpg
from sqlalchemy.exc import DBAPIError

# connection_exception, insufficient_resources, operator_intervention (a restart, a killed backend).
_SQLSTATE_CLASSES = ("08", "53", "57")


def is_unavailable(error: BaseException) -> bool:
    """Say whether the same statement may succeed once the database is back."""
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return True
        return error.orig is not None and is_unavailable(error.orig)
    # The internal error is what a connection raises that is used while the server is closing it.
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | TimeoutError):
        return True
    state = getattr(error, "sqlstate", None) or ""
    if state.startswith(_SQLSTATE_CLASSES):
        return True
    return error.__cause__ is not None and is_unavailable(error.__cause__)
