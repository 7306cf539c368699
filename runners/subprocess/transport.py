"""Starts runners that are programs of their own."""

from runhost.protocol import AgentRunContext, AgentRunnerDescriptor
from runhost.sdk.connection import HostConnection
from runners.errors import RunnerNotFound
from runners.program import RunnerProgram
from runners.registry import RunnerRegistry
from runners.subprocess.session import ProgramLimits, ProgramRun, ProgramSession


class SubprocessTransport:
    """Transport of the programs that a registry holds; use it on the worker's loop."""

    def __init__(self, registry: RunnerRegistry, limits: ProgramLimits | None = None) -> None:
        self._registry = registry
        self._limits = limits or ProgramLimits()
        self._sessions: set[ProgramSession] = set()

    @property
    def open_programs(self) -> int:
        """Programs that run, or whose processes do not die."""
        return len(self._sessions)

    def open(self, descriptor: AgentRunnerDescriptor, context: AgentRunContext, host: HostConnection) -> ProgramSession:
        """Start a program for one run. That it cannot be executed is raised by the session.

        Raises:
            RunnerNotFound: the registry does not hold that runner, or it is no program.
        """
        source = self._registry.registered(descriptor.id).source
        if not isinstance(source.execution, RunnerProgram):
            raise RunnerNotFound(descriptor.id)
        run = ProgramRun(descriptor.id, source.discovery.manifest, source.execution, context)
        session = ProgramSession(run, host, self._limits)
        # A program that does not die is followed although its session has been let go of.
        self._sessions.add(session)
        session.living.add_done_callback(lambda _: self._sessions.discard(session))
        return session
