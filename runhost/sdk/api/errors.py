"""Builds the exceptions of the runner's side of the host API (PROTOCOL 10)."""

from runhost.protocol import AgentAPIError, AgentAPIException, ErrorCode, JsonObject


def api_error(
    code: str, message: str, *, retryable: bool = False, details: JsonObject | None = None
) -> AgentAPIException:
    """Build an exception; `details` are facts for programs."""
    # The plain text of an enum member, like a code that came over a wire.
    error = AgentAPIError(code=str(code), message=message, retryable=retryable, details=details or {})
    return AgentAPIException(error)


def unauthorized(message: str) -> AgentAPIException:
    """Refuse what the run was not granted."""
    return api_error(ErrorCode.UNAUTHORIZED, message)


def invalid_argument(message: str) -> AgentAPIException:
    """Refuse a parameter; the message begins with its name."""
    return api_error(ErrorCode.INVALID_ARGUMENT, message)


def too_large(message: str) -> AgentAPIException:
    """Refuse a parameter beyond its limit."""
    return api_error(ErrorCode.PAYLOAD_TOO_LARGE, message)


def deadline_exceeded(method: str, *, is_sent: bool) -> AgentAPIException:
    """Give up a call because the run's time is over."""
    fate = "it may or may not have been carried out" if is_sent else "nothing was sent"
    return api_error(ErrorCode.DEADLINE_EXCEEDED, f"{method}: ctx.runtime.deadline_at has passed; {fate}.")


def malformed_answer(method: str, reason: str) -> AgentAPIException:
    """Report an answer that is not what the protocol says."""
    return api_error(ErrorCode.RUNTIME_ERROR, f"{method}: the host's answer does not fit the protocol: {reason}.")


def unstructured_error(method: str, text: str) -> AgentAPIException:
    """Wrap an error that came as mere text, so that nobody has to match strings."""
    return api_error(ErrorCode.HOST_ACTION_ERROR, f"{method}: {text}")
