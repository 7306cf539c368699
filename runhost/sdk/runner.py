"""Base class of runners."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from runhost.protocol import AgentRunContext, AgentRunnerManifest, AgentRunResult, JsonObject
from runhost.sdk.proxy import AgentRunAPIProxy


class AgentRunner(ABC):
    """Executes an agent: takes the context of one run, yields its results.

    The host makes one instance per worker, without arguments, and calls `run` on it for every run, several at
    the same time, each on a thread and an event loop of its own. So an instance holds nothing that belongs to
    one conversation or one event loop (PROTOCOL P-D8): make HTTP clients inside `run`, and keep what has to
    outlive a run in host state.

    Attributes:
        manifest: the runner's manifest, set by the host before the first run.
    """

    manifest: AgentRunnerManifest | None = None

    @abstractmethod
    def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        """Work on one event; an `async def` that yields.

        Results take effect in the order in which they are yielded, and readers see them at once. The last one
        is `run.completed` or `run.failed`; the host reads nothing after it. An exception fails the run with
        code `runner.error`; report what you expect to go wrong with `results.failed` and a code of your own.

        Never block: a runner that holds its event loop for 4 seconds is failed with `runner.blocked`.
        Blocking calls belong in `asyncio.to_thread`. A runner that yields faster than its results can be
        stored is paused at its `yield`.

        A run that is cancelled, or out of time, gets `asyncio.CancelledError` where it awaits or yields.
        Clean up and let it pass, or catch it, yield `results.cancelled` and return (P-T4). A few seconds
        later the runner is ended by force.
        """
        raise NotImplementedError

    def config_of(self, ctx: AgentRunContext) -> JsonObject:
        """Return the agent's configuration with the defaults of the runner's form for what it leaves out."""
        form = self.manifest.config_schema if self.manifest else []
        defaults = {item.name: item.default for item in form if item.name and item.default is not None}
        return defaults | ctx.config

    def get_run_api(self, ctx: AgentRunContext) -> AgentRunAPIProxy:
        """Return the way to the host for the run of `ctx`; for use inside `run`.

        Raises:
            RuntimeError: There is no host: a test gives one with `runhost.sdk.connected`.
        """
        return AgentRunAPIProxy(ctx)
