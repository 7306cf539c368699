"""How the host reaches a runner, whatever it runs in.

A transport opens one session per attempt. The host reads the session until it ends or raises, and always
calls `stop` last, also after a normal end: only then is it settled what the runner left behind.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from runhost.protocol import AgentRunContext, AgentRunnerDescriptor, JsonObject
from runhost.sdk.connection import HostConnection


class StopReason(StrEnum):
    """Why the host stops a runner."""

    ENDED = "ended"
    """Its last result was read; anything after it is not wanted."""
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    REFUSED = "refused"
    """It broke the protocol, and the host reads no further."""
    SUPERSEDED = "superseded"
    """Another attempt has taken its place."""
    SHUTDOWN = "shutdown"
    """The worker that holds it goes away."""


@dataclass(frozen=True, slots=True)
class Residual:
    """Something of a runner that goes on although the host has let go of it.

    Attributes:
        kind: `thread`, `blocking_calls`; other transports add theirs (`process`, `remote_run`).
        detail: one line for operators, free of what users wrote.
    """

    kind: str
    detail: str


class RunnerSession(Protocol):
    """One attempt of one runner. Every method is called on the worker's main event loop."""

    async def next_batch(self) -> list[object]:
        """Wait for the runner's next results and take all that are there.

        The values are as the runner yielded them, not validated, in its order. One reader at a time.
        Cancelling the wait loses nothing.

        Returns:
            At least one result; an empty list when the runner has ended.

        Raises:
            RunnerCrashed: the runner raised. All results before it were handed over first.
            RunnerBlocked: the runner does not answer any more. Likewise.
        """
        ...

    def results(self) -> AsyncIterator[object]:
        """The same results one by one; ends and raises as `next_batch` does."""
        ...

    async def stop(self, reason: StopReason, grace_seconds: float) -> Residual | None:
        """Ask the runner to end, wait, then end it by force.

        May be called in any state, again, and while results are read: a runner that is told to stop may still
        yield last results. Takes at most `grace_seconds` and about two seconds. A cancelled `stop` skips the
        rest of the grace.

        Returns:
            What could not be stopped, or None when nothing is left.
        """
        ...


@runtime_checkable
class Diagnosable(Protocol):
    """A session that knows more of its runner's end than results and errors say."""

    def diagnostics(self) -> JsonObject:
        """Tell what is known by now; empty when there is nothing worth telling.

        It may quote what users wrote, so it belongs in the ledger and neither in logs nor in Temporal (INV-9).
        """
        ...


class RunnerTransport(Protocol):
    """Starts runners of one kind."""

    def open(self, descriptor: AgentRunnerDescriptor, context: AgentRunContext, host: HostConnection) -> RunnerSession:
        """Start the runner of `descriptor` for one attempt; results may be read at once.

        Args:
            descriptor: the runner.
            context: what the run is about.
            host: the host API of this attempt, to be used on the worker's main event loop only.

        Raises:
            RunnerNotFound: this transport does not hold that runner.
        """
        ...
