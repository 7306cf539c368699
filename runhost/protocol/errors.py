"""Error codes and error bodies (PROTOCOL 10, HOST 2.7, API.md)."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from typing import Final, cast

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from runhost.protocol.identifiers import Code
from runhost.protocol.json import JsonObject, StrictModel

_MAX_REASON: Final = 400
_MAX_SHOWN_FAULTS: Final = 3
_MAX_SHOWN_NAME: Final = 60
_MAX_EXCERPT: Final = 2_000
_EXCERPT_LEVELS: Final = 4
_MAX_SHOWN_TEXT: Final = 500
_MAX_SHOWN_ITEMS: Final = 10
_MAX_SHOWN_BITS: Final = 64
_BRANCH_NAMES: Final = frozenset({"<parts>"})


class ErrorCode(StrEnum):
    """What a call of the host API or of the HTTP API can answer instead of a result.

    The first eight are those of PROTOCOL 10, the rest those of API.md.
    """

    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    RATE_LIMITED = "rate_limited"
    INVALID_ARGUMENT = "invalid_argument"
    RUNTIME_ERROR = "runtime_error"
    HOST_ACTION_ERROR = "host.action_error"

    RUN_NOT_FOUND = "run_not_found"
    RUN_TERMINAL = "run_terminal"
    STALE_ATTEMPT = "stale_attempt"
    SEQUENCE_CONFLICT = "sequence_conflict"
    EVENT_CONFLICT = "event_conflict"
    BINDING_NOT_FOUND = "binding_not_found"
    BINDING_AMBIGUOUS = "binding_ambiguous"
    CONVERSATION_BUSY = "conversation_busy"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    IDEMPOTENCY_KEY_IN_USE = "idempotency_key_in_use"
    CURSOR_INVALID = "cursor_invalid"
    CURSOR_EXPIRED = "cursor_expired"
    ENGINE_UNAVAILABLE = "engine_unavailable"


class RunFailureCode(StrEnum):
    """Why a run did not complete, in the words of the host; runners may have other codes (PROTOCOL 10)."""

    RUNNER_ERROR = "runner.error"
    RUNNER_TIMEOUT = "runner.timeout"
    RUNNER_LOST = "runner.lost"
    RUNNER_NO_OUTPUT = "runner.no_output"
    RUNNER_PROTOCOL = "runner.protocol"
    RUNNER_BLOCKED = "runner.blocked"
    RUNNER_NOT_FOUND = "runner.not_found"
    RUNNER_NOT_AUTHORIZED = "runner.not_authorized"
    PLUGIN_DISABLED = "plugin.disabled"
    DISPATCH_EXHAUSTED = "dispatch.exhausted"
    CANCELLED = "cancelled"
    HOST_ERROR = "host.error"


class AgentAPIError(StrictModel):
    """A refused or failed call (PROTOCOL 10).

    Attributes:
        code: An `ErrorCode`, or a code of a newer host.
        message: What went wrong and what to do next.
        retryable: The same call may succeed later.
        details: Facts for programs, by code.
    """

    code: Code
    message: str
    retryable: bool = False
    details: JsonObject = Field(default_factory=dict)


class AgentAPIException(Exception):
    """Raised by the runner's side of the host API; `error` says what the host answered (PROTOCOL 10)."""

    def __init__(self, error: AgentAPIError) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


def describe_validation(error: ValidationError, *, below: str = "") -> str:
    """Say in at most 400 characters which fields are at fault and why, without any value that was sent.

    Args:
        error: What pydantic found.
        below: Name of the field that holds the validated value, for the paths.
    """
    return describe_faults(error.errors(include_url=False, include_context=False, include_input=False), below=below)


def describe_faults(faults: Sequence[ErrorDetails], *, below: str = "") -> str:
    """Like `describe_validation`, for some of the faults."""
    start = (below,) if below else ()
    parts = [f"{field_path((*start, *fault['loc']))}: {fault['msg']}" for fault in faults[:_MAX_SHOWN_FAULTS]]
    if len(faults) > _MAX_SHOWN_FAULTS:
        parts.append(f"{len(faults) - _MAX_SHOWN_FAULTS} more")
    return "; ".join(parts)[:_MAX_REASON]


def field_path(location: tuple[str | int, ...]) -> str:
    """Write the location of a validation error as `chunk.content[2].type`.

    Names that pydantic gives to the branches of a union are left out. Long names are cut and unprintable
    characters escaped, since the names of unknown fields come from the sender.
    """
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in _BRANCH_NAMES:
            path += ("." if path else "") + printable(step)
    return path or "(whole value)"


def printable(name: str) -> str:
    """Cut a sender's name for something to 60 characters and escape what cannot be printed or stored."""
    shown = repr(name[:_MAX_SHOWN_NAME])[1:-1]
    return shown if len(name) <= _MAX_SHOWN_NAME else shown + "..."


def excerpt(value: object) -> str:
    """Show the beginning of a value that was rejected, for the ledger (D-23).

    At most 2,000 characters, all of them printable, whatever the value is. Foreign objects show their type
    only, so none of their code runs.
    """
    return _shown(value, _EXCERPT_LEVELS)[:_MAX_EXCERPT]


def _shown(value: object, levels: int) -> str:
    if isinstance(value, str):
        return repr(value[:_MAX_SHOWN_TEXT]) + ("..." if len(value) > _MAX_SHOWN_TEXT else "")
    if isinstance(value, int) and value.bit_length() > _MAX_SHOWN_BITS:
        return f"<integer of {value.bit_length()} bits>"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if levels and isinstance(value, dict):
        fields = islice(cast("dict[object, object]", value).items(), _MAX_SHOWN_ITEMS)
        return "{" + ", ".join(f"{_shown(key, 0)}: {_shown(item, levels - 1)}" for key, item in fields) + "}"
    if levels and isinstance(value, list | tuple):
        items = islice(cast("list[object]", value), _MAX_SHOWN_ITEMS)
        return "[" + ", ".join(_shown(item, levels - 1) for item in items) + "]"
    return f"<{printable(type(value).__name__)}>"
