"""Chooses between the transports of one worker."""

from runhost.protocol import AgentRunContext, AgentRunnerDescriptor
from runhost.sdk.connection import HostConnection
from runners.program import RunnerProgram
from runners.registry import RunnerRegistry
from runners.transport import RunnerSession, RunnerTransport


class RoutingTransport:
    """One transport for the runners of a registry, whatever they run in.

    Args:
        registry: the runners.
        in_process: executes those that are Python code for the worker.
        programs: executes those that are programs of their own.
    """

    def __init__(self, registry: RunnerRegistry, *, in_process: RunnerTransport, programs: RunnerTransport) -> None:
        self._registry = registry
        self._in_process = in_process
        self._programs = programs

    def open(self, descriptor: AgentRunnerDescriptor, context: AgentRunContext, host: HostConnection) -> RunnerSession:
        """Start the runner as its manifest says.

        Raises:
            RunnerNotFound: the registry does not hold that runner.
        """
        execution = self._registry.registered(descriptor.id).source.execution
        transport = self._programs if isinstance(execution, RunnerProgram) else self._in_process
        return transport.open(descriptor, context, host)
