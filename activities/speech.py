"""What an attempt has said so far: whether it was anything, and what a reader of its deltas saw (D-24, D-25)."""

from dataclasses import dataclass, field

from activities.projections import is_blank
from runhost.protocol import Message, MessageChunk, RunFailureCode, RunStatus
from stores.journal import AttemptEnd


@dataclass(slots=True)
class Speech:
    """Follows the results of one attempt.

    Attributes:
        has_output: There was a message, an artifact, a state update or an action.
        accepted: Results accepted, terminal ones aside.
        rejected: Results rejected.
    """

    has_output: bool = False
    accepted: int = 0
    rejected: int = 0
    _streamed: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    _last_message: Message | None = None

    def hear(self, chunk: MessageChunk) -> None:
        """Follow a delta."""
        if not isinstance(chunk.content, str) or not chunk.content:
            return
        self.has_output = True
        if chunk.mode == "replace":
            self._streamed[chunk.message_index] = [chunk.content]
        else:
            self._streamed.setdefault(chunk.message_index, []).append(chunk.content)

    def complete(self, message: Message) -> bool:
        """Follow a whole message; it stands for the deltas before it.

        Returns False where it says just what the last one said, and so is not delivered again (D-25).
        """
        self._streamed.clear()
        if not is_blank(message):
            self.has_output = True
        is_new = message != self._last_message
        self._last_message = message
        return is_new

    def unfinished(self) -> list[Message]:
        """Return what was only streamed, a message per index, and forget it."""
        messages = [Message(role="assistant", content="".join(parts)) for _, parts in sorted(self._streamed.items())]
        self._streamed.clear()
        return messages

    def judge(self, end: AttemptEnd, *, is_answer_expected: bool) -> AttemptEnd:
        """Turn a success that showed nothing into a failure (D-23, D-24, LA-08)."""
        only_rejected = self.rejected > 0 and self.accepted == 0
        if end.outcome != RunStatus.COMPLETED or not ((is_answer_expected and not self.has_output) or only_rejected):
            return end
        return AttemptEnd(
            RunStatus.FAILED.value,
            RunFailureCode.RUNNER_NO_OUTPUT.value,
            "The runner ended without a message, an artifact, a state update or an action.",
        )
