"""The runner under test, and how it is reached."""

from dataclasses import dataclass, field
from typing import Final

from runhost.protocol import AgentRunnerDescriptor, JsonObject
from runners.conformance.endpoint import ModelEndpoint
from runners.transport import RunnerTransport

_PROGRAM_START_SECONDS: Final = 4.0


@dataclass(frozen=True, slots=True)
class Target:
    """What the kit drives.

    Attributes:
        descriptor: The runner.
        transport: Opens its runs.
        crosses_process: Whether its results come from another process, so that they must be numbered (P-S3).
        config: Configuration for the runs, beside the defaults of the runner's form.
        endpoint: A model endpoint that the configuration points to, if the kit has started one.
    """

    descriptor: AgentRunnerDescriptor
    transport: RunnerTransport
    crosses_process: bool = False
    config: JsonObject = field(default_factory=dict)
    endpoint: ModelEndpoint | None = None

    @property
    def start_seconds(self) -> float:
        """How long its code may take to begin: a deadline before that would show nothing."""
        return _PROGRAM_START_SECONDS if self.crosses_process else 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the kit waits.

    Attributes:
        run_seconds: For one run to end by itself; a runner that asks a real model may need more.
        grace_seconds: For a runner to end once it is told to; the host gives as much (DESIGN 9).
        after_end_seconds: How long results after the end are waited for.
        deadline_slack_seconds: How long after its deadline a runner is left alone.
        total_seconds: For everything; what was not begun by then counts as failed.
    """

    run_seconds: float = 30.0
    grace_seconds: float = 5.0
    after_end_seconds: float = 1.0
    deadline_slack_seconds: float = 0.5
    total_seconds: float = 900.0
