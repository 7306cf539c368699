"""How a runner reaches its host: one small interface, whatever lies between the two."""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from runhost.protocol import JsonObject


class HostConnection(Protocol):
    """The host API of one attempt of one run. The host adds run, token and plugin identity by itself.

    Parameters and answers are the JSON objects of `runhost.protocol.host_api.HOST_METHODS`.
    """

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Call a method and wait for its answer; a cancelled call is cancelled in the host too.

        Raises:
            AgentAPIException: The host refused, or could not be reached.
        """
        ...

    def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Call a method that streams, and yield its events; closing the generator ends the call in the host.

        Raises:
            AgentAPIException: As in `call`, before the first event or between two.
        """
        ...


_current: ContextVar[HostConnection | None] = ContextVar("runhost_host_connection", default=None)


def current_connection() -> HostConnection:
    """Return the connection of the run that this code is part of.

    Raises:
        RuntimeError: This code is not part of a run, so there is no host to reach.
    """
    connection = _current.get()
    if connection is None:
        raise RuntimeError("There is no host to reach: call this inside AgentRunner.run, or give a connection.")
    return connection


def connect(connection: HostConnection) -> None:
    """Make `connection` the current one for the rest of this context, and for what is started in it."""
    _current.set(connection)


@contextmanager
def connected(connection: HostConnection) -> Generator[None]:
    """Make `connection` the current one; what is started inside inherits it."""
    token = _current.set(connection)
    try:
        yield
    finally:
        _current.reset(token)
