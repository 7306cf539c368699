"""How a call is refused or fails; its code is what the runner sees (PROTOCOL 10)."""

from runhost.protocol import AgentAPIError, ErrorCode, JsonObject


class HostCallError(Exception):
    """A call that has no answer.

    Args:
        code: One of PROTOCOL 10.
        message: What happened and what to do next. It must tell a caller nothing about what it may not see:
            an unknown id and one of somebody else read the same.
        retryable: The same call may succeed later.
        retry_after_seconds: When, if that is known.
        details: Facts for programs.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.details = details or {}

    def as_error(self) -> AgentAPIError:
        """Return the error as the runner's side reads it."""
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retry_after_seconds"] = self.retry_after_seconds
        return AgentAPIError(code=self.code.value, message=self.message, retryable=self.retryable, details=details)


def unauthorized(message: str) -> HostCallError:
    """Refuse what the run's snapshot does not grant."""
    return HostCallError(ErrorCode.UNAUTHORIZED, message)


def not_found(message: str) -> HostCallError:
    """Refuse what does not exist, or not for this run."""
    return HostCallError(ErrorCode.NOT_FOUND, message)


def invalid_argument(field: str, message: str) -> HostCallError:
    """Refuse a parameter; ``field`` is its path."""
    return HostCallError(ErrorCode.INVALID_ARGUMENT, f"{field}: {message}", details={"field": field})


def too_large(message: str) -> HostCallError:
    """Refuse a request or an answer beyond its limit."""
    return HostCallError(ErrorCode.PAYLOAD_TOO_LARGE, message)
