"""The host API for runners that the host itself executes: the same gate, without HTTP in between."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from host_api.errors import HostCallError
from host_api.gate import HostApi
from host_api.session import Credentials
from runhost.protocol import AgentAPIException, JsonObject


class AttemptConnection:
    """The host API of one attempt, as a `runhost.sdk.connection.HostConnection`.

    It carries the attempt's own credentials: what a runner writes about itself is never asked for (H-A3, PM-7).
    """

    def __init__(self, host_api: HostApi, credentials: Credentials) -> None:
        self._host_api = host_api
        self._credentials = credentials

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Call a method.

        Raises:
            AgentAPIException: It is refused, or failed.
        """
        try:
            return await self._host_api.call(self._credentials, method, params)
        except HostCallError as error:
            raise AgentAPIException(error.as_error()) from None

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Call a method that streams.

        Raises:
            AgentAPIException: It is refused, or failed between two events.
        """
        try:
            async with aclosing(self._host_api.stream(self._credentials, method, params)) as events:
                async for event in events:
                    yield event
        except HostCallError as error:
            raise AgentAPIException(error.as_error()) from None
