"""What crosses Temporal between the run workflow and its activities (INV-9).

Ids, counters, codes and times; nothing that a user wrote and nothing secret. These shapes are data in
histories: they change by new fields with defaults only, and ignore fields they do not know.
"""

from pydantic import BaseModel, ConfigDict

from runhost.protocol import RunStatus


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class RunOrder(_Message):
    """The one argument of the run workflow and of each of its activities.

    ``run_id`` has a default because an argument that cannot be decoded would leave the workflow running for
    ever (TEMPORAL 9); the first activity refuses an empty one.
    """

    run_id: str = ""


class Ended(_Message):
    """How an attempt ended, or why none was opened: ``completed``, ``failed``, ``cancelled`` or ``timeout``."""

    outcome: str
    code: str | None = None
    retryable: bool = False


class Invocation(_Message):
    """How to schedule `runner.invoke`. ``deadline_at`` is in epoch seconds; None means no deadline."""

    task_queue: str
    deadline_at: float | None = None
    max_attempts: int = 3
    heartbeat_timeout_seconds: float = 30.0


class Prepared(_Message):
    """The answer of `runs.prepare`: either how to go on, or that the run has ended before it began."""

    invocation: Invocation | None = None
    ended: Ended | None = None


class FinalizeOrder(RunOrder):
    """What the workflow knows of the end. The ledger knows better where the attempt said it itself."""

    ended: Ended
    is_cancel_requested: bool = False


class Settled(_Message):
    """The run's terminal status."""

    status: RunStatus
    code: str | None = None


class Progress(_Message):
    """The answer to the query ``progress``."""

    run_id: str
    phase: str
