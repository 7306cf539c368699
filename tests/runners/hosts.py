"""Hosts for runners that run without one."""

from collections.abc import AsyncGenerator

from runhost.protocol import AgentAPIError, AgentAPIException, JsonObject


class NoHost:
    """Refuses every call."""

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        raise _refusal(method)

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject, None]:
        raise _refusal(method)
        yield {}


def _refusal(method: str) -> AgentAPIException:
    return AgentAPIException(AgentAPIError(code="unauthorized", message=f"There is no host for {method} here."))


NO_HOST = NoHost()
