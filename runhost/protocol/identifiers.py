"""Names: runner ids, event types, event sources, workflow ids (PROTOCOL 2 and 13, DECISIONS D-2, D-5)."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import StringConstraints

MAX_ID_LENGTH: Final = 255
MAX_EVENT_TYPE_LENGTH: Final = 100

# Control characters are no part of any name we know of, and NUL cannot be stored in Postgres at all.
_NO_CONTROLS: Final = r"^[^\x00-\x1f\x7f]*$"

Identifier: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_LENGTH, pattern=_NO_CONTROLS)]
"""An opaque id: 1 to 255 characters, no control characters (HOST 15)."""

Code: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_NO_CONTROLS)]
"""A code or the type of a result: 1 to 100 characters, no control characters."""

Kind: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=_NO_CONTROLS)]
"""A kind of thing, such as `image` or `user`: 1 to 50 characters, no control characters (HOST 2.6)."""

MediaType: TypeAlias = Annotated[str, StringConstraints(max_length=MAX_ID_LENGTH, pattern=_NO_CONTROLS)]
"""A media type such as `image/png`, at most 255 characters."""

Digest: TypeAlias = Annotated[str, StringConstraints(max_length=64, pattern=_NO_CONTROLS)]
"""A SHA-256 in hex, at most 64 characters."""

EVENT_TYPE_PATTERN: Final = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"
EventType: TypeAlias = Annotated[str, StringConstraints(max_length=MAX_EVENT_TYPE_LENGTH, pattern=EVENT_TYPE_PATTERN)]
"""A stable event name such as `message.received`, at most 100 characters (D-5)."""

STABLE_EVENT_TYPES: Final = frozenset(
    {
        "message.received",
        "message.recalled",
        "group.member_joined",
        "friend.request_received",
        "schedule.triggered",
        "api.invoked",
        "interaction.submitted",
    }
)
"""Names with a fixed meaning (D-5). Others are allowed as long as they match `EVENT_TYPE_PATTERN`."""

EventSource: TypeAlias = Literal["platform", "webui", "api", "scheduler", "system", "host_adapter"]
"""Where an event came from (D-5). Rows that the host or a runner causes say `host` or `runner` instead."""

StateScope: TypeAlias = Literal["conversation", "actor", "subject", "runner"]
"""The four scopes of host-owned state (D-43)."""

_RUNNER_PREFIX: Final = "plugin:"
_RUNNER_SEGMENTS: Final = 3
_WORKFLOW_PREFIX: Final = "run-"


class InvalidRunnerId(ValueError):
    """A runner id is not `plugin:<author>/<plugin_name>/<runner_name>`."""

    def __init__(self, value: str) -> None:
        shown = value if len(value) <= MAX_ID_LENGTH else value[:MAX_ID_LENGTH] + "..."
        super().__init__(
            f"runner id {shown!r} is invalid: write plugin:<author>/<plugin_name>/<runner_name>, "
            f"three non-empty segments, at most {MAX_ID_LENGTH} characters"
        )


@dataclass(frozen=True, slots=True)
class RunnerId:
    """Address of a runner, `plugin:<author>/<plugin_name>/<runner_name>` as text (PROTOCOL 2).

    Raises:
        InvalidRunnerId: A segment is empty or holds a `/`, or the text exceeds 255 characters.
    """

    author: str
    plugin_name: str
    runner_name: str

    def __post_init__(self) -> None:
        segments = (self.author, self.plugin_name, self.runner_name)
        if not all(segments) or any("/" in segment for segment in segments) or len(str(self)) > MAX_ID_LENGTH:
            raise InvalidRunnerId(str(self))

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the text form.

        Raises:
            InvalidRunnerId: `value` is anything else.
        """
        segments = value.removeprefix(_RUNNER_PREFIX).split("/")
        if not value.startswith(_RUNNER_PREFIX) or len(segments) != _RUNNER_SEGMENTS:
            raise InvalidRunnerId(value)
        return cls(*segments)

    @property
    def plugin_id(self) -> str:
        """Identity of the plugin that offers the runner, `<author>/<plugin_name>`."""
        return f"{self.author}/{self.plugin_name}"

    def __str__(self) -> str:
        return f"{_RUNNER_PREFIX}{self.author}/{self.plugin_name}/{self.runner_name}"


def workflow_id_for(run_id: str) -> str:
    """Return the id of the workflow that owns a run (DESIGN 4)."""
    return _WORKFLOW_PREFIX + run_id


def run_id_from(workflow_id: str) -> str:
    """Return the run that a workflow owns.

    Raises:
        ValueError: The id does not name a run. Workflow ids can be typed by hand in the Temporal UI.
    """
    run_id = workflow_id.removeprefix(_WORKFLOW_PREFIX)
    if not run_id or run_id == workflow_id:
        raise ValueError(f"workflow id {workflow_id[:MAX_ID_LENGTH]!r} names no run: write run-<run_id>")
    return run_id
