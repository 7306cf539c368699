"""The session of a call: which run, which attempt, and what it may reach right now."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from host_api.authorization import Authorization


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller shows. ``plugin_identity`` is what the connection says, never what the runner writes (H-A3)."""

    token: str
    run_id: str
    plugin_identity: str | None


@dataclass(frozen=True, slots=True)
class RunSession:
    """The current attempt of an open run.

    Attributes:
        authorization: The run's snapshot, less what was taken back from it.
        deadline_at: When the run times out; None for never.
    """

    run_id: UUID
    attempt: int
    workspace_id: str
    runner_id: str
    deadline_at: datetime | None
    authorization: Authorization

    @property
    def plugin_identity(self) -> str:
        """Identity of the plugin that the runner belongs to, `author/name`."""
        return self.authorization.plugin_identity
