"""What a run may read of its workspace: its own conversation, and what is its own (H-A7, H-P5)."""

from dataclasses import dataclass
from uuid import UUID

CONVERSATION = """workspace_id = $1 AND conversation_id = $2 AND thread_id IS NOT DISTINCT FROM $3
    AND ($4::text IS NULL OR bot_id = $4)"""
"""Condition on a row of the run's conversation, for the first four of `RunScope.arguments`.

The thread is compared with null included: a run outside of threads does not read into them. A run without a
bot reads what any bot said there.
"""

READABLE = f"workspace_id = $1 AND (run_id = $5 OR ({CONVERSATION}))"
"""Condition on a row of the run's conversation or of the run itself, for the arguments of `RunScope`."""


@dataclass(frozen=True, slots=True)
class RunScope:
    """Where a run took place. Without a conversation nothing but its own rows is in its scope."""

    workspace_id: str
    conversation_id: str | None
    thread_id: str | None
    bot_id: str | None
    run_id: UUID

    @property
    def conversation(self) -> tuple[str, str | None, str | None, str | None]:
        """The arguments of `CONVERSATION`."""
        return self.workspace_id, self.conversation_id, self.thread_id, self.bot_id

    @property
    def arguments(self) -> tuple[str, str | None, str | None, str | None, UUID]:
        """The arguments of `READABLE`."""
        return *self.conversation, self.run_id
