"""The runner's way to its host: every method of PROTOCOL 9, by its name."""

from runhost.protocol import AgentRunContext
from runhost.protocol.host_api import HostVersion
from runhost.sdk.api.artifacts import ArtifactCalls
from runhost.sdk.api.history import HistoryCalls
from runhost.sdk.api.models import ModelCalls
from runhost.sdk.api.resources import ResourceCalls
from runhost.sdk.api.state import StateCalls
from runhost.sdk.connection import HostConnection, current_connection


class AgentRunAPIProxy(ModelCalls, ResourceCalls, HistoryCalls, ArtifactCalls, StateCalls):
    """Calls the host for one run, as far as the run was granted it.

    Usable by many tasks of the run at once. What fails raises `AgentAPIException`, whose `error` has a `code`:

    - `unauthorized`: not granted, or granted and taken back; or the run or this attempt of it has ended.
    - `not_found`, `invalid_argument`, `payload_too_large`, `rate_limited`: as they say.
    - `deadline_exceeded`: `ctx.runtime.deadline_at` has passed. It bounds every call (P-T1).
    - `runtime_error`: the host or what lies behind it failed, or its answer makes no sense.
    - `host.action_error`: an error without a structure; `message` is all there is.

    What the context says is not granted, is too large or comes too late is refused without asking the host.
    The host checks all the same, and knows what was taken back since the run started (S-2).

    Args:
        ctx: What the run was given.
        connection: Carries the calls; by default that of the run which this code is part of.

    Raises:
        RuntimeError: There is no connection, because this code is not part of a run.
    """

    def __init__(self, ctx: AgentRunContext, connection: HostConnection | None = None) -> None:
        super().__init__(ctx, current_connection() if connection is None else connection)

    async def get_langbot_version(self) -> str:
        """Read the version of the host, under its protocol name (D-2)."""
        return (await self._calls.call("get_langbot_version", HostVersion)).langbot_version
