"""The runners that a worker can execute."""

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from threading import Lock

import structlog

from runhost.protocol import AgentRunnerDescriptor, InvalidRunnerId, RunnerAddressMismatch
from runhost.sdk import AgentRunner
from runners.errors import DiscoveryFailed, RunnerNotAuthorized, RunnerNotFound
from runners.manifest import DiscoveredRunner

logger = structlog.get_logger(__name__)


class RegisteredRunner:
    """A runner of the registry.

    One that is Python code for the worker has one instance, which all its runs share (PROTOCOL P-D8).
    """

    def __init__(self, source: DiscoveredRunner, descriptor: AgentRunnerDescriptor) -> None:
        self.source = source
        self.descriptor = descriptor
        self._building = Lock()
        self._instance: AgentRunner | None = None

    @property
    def runner_id(self) -> str:
        """Id of the runner."""
        return self.descriptor.id

    @property
    def folder(self) -> Path:
        """Folder of its code."""
        return self.source.execution.folder

    def instance(self) -> AgentRunner:
        """Return the instance; the first call imports the code and makes it, in the thread that calls.

        A failure is not remembered: the next call tries again.

        Raises:
            InvalidRunner: the code is not what the manifest promises, or is a program of its own.
            Exception: anything that importing or making it raises.
        """
        with self._building:
            if self._instance is None:
                instance = self.source.code.load(self.runner_id)()
                instance.manifest = self.source.discovery.manifest
                self._instance = instance
            return self._instance


class RunnerRegistry:
    """Keeps the runners of one worker in memory (HOST 5).

    It fills on first use and is replaced as a whole by `refresh`, which may run in any thread. Refreshing sees
    new, changed and removed manifests. New code of a runner that was already imported needs a new process.

    Args:
        discover: finds the runners; raises `DiscoveryFailed` when it cannot.
    """

    def __init__(self, discover: Callable[[], Sequence[DiscoveredRunner]]) -> None:
        self._discover = discover
        self._runners: dict[str, RegisteredRunner] | None = None
        self._stale = False
        self._refreshed_at: float | None = None

    @property
    def stale(self) -> bool:
        """Whether the last discovery failed, so that these are the runners of an earlier one (D-19)."""
        return self._stale

    @property
    def refreshed_at(self) -> float | None:
        """Epoch seconds of the last discovery that worked; None if there was none."""
        return self._refreshed_at

    def refresh(self) -> bool:
        """Discover anew. Reads files, and may be called again and again.

        Returns:
            Whether it worked. If not, a warning was logged, and what was known stays (D-19).
        """
        try:
            found = self._discover()
        except DiscoveryFailed as error:
            logger.warning("runners.discovery_failed", reason=str(error), kept=len(self._runners or {}))
            self._stale = True
            self._runners = self._runners or {}
            return False
        self._runners = self._register(found)
        self._stale = False
        self._refreshed_at = time.time()
        return True

    def descriptors(self, bound_plugins: Collection[str] | None = None) -> list[AgentRunnerDescriptor]:
        """List the runners by id.

        Args:
            bound_plugins: plugin identities (`author/name`) to list; None for all (H-R1).
        """
        runners = sorted(self._known().values(), key=lambda runner: runner.runner_id)
        return [runner.descriptor for runner in runners if _is_bound(runner.descriptor, bound_plugins)]

    def get(self, runner_id: str, bound_plugins: Collection[str] | None = None) -> AgentRunnerDescriptor:
        """Return the descriptor of a runner (H-R6).

        Raises:
            RunnerNotFound: not registered, or no runner id at all.
            RunnerNotAuthorized: registered, but of none of `bound_plugins`.
        """
        descriptor = self.registered(runner_id).descriptor
        if not _is_bound(descriptor, bound_plugins):
            raise RunnerNotAuthorized(runner_id, descriptor.plugin_id)
        return descriptor

    def registered(self, runner_id: str) -> RegisteredRunner:
        """Return a runner together with its code.

        Raises:
            RunnerNotFound: not registered, or no runner id at all.
        """
        runner = self._known().get(runner_id)
        if runner is None:
            raise RunnerNotFound(runner_id)
        return runner

    def _known(self) -> dict[str, RegisteredRunner]:
        if self._runners is None:
            self.refresh()
        return self._runners or {}

    def _register(self, found: Sequence[DiscoveredRunner]) -> dict[str, RegisteredRunner]:
        before = self._runners or {}
        after: dict[str, RegisteredRunner] = {}
        for source in found:
            try:
                descriptor = AgentRunnerDescriptor.from_discovery(source.discovery)
            except (InvalidRunnerId, RunnerAddressMismatch) as error:
                logger.warning("runner.skipped", file=str(source.file), reason=str(error))
                continue
            known = before.get(descriptor.id)
            if known is None or known.source != source:
                known = RegisteredRunner(source, descriptor)
            # An unchanged runner keeps its instance.
            after[descriptor.id] = known
        return after


def _is_bound(descriptor: AgentRunnerDescriptor, bound_plugins: Collection[str] | None) -> bool:
    return bound_plugins is None or descriptor.plugin_id in bound_plugins
