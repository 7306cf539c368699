"""How what goes wrong with a tool server becomes a `ProviderError`.

Our own transports answer in the place of a server that cannot be reached or read, with codes of our own.
"""

from collections.abc import Sequence
from typing import Any, Final

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from mcp_types.jsonrpc import ErrorData

from providers.errors import AnswerTooLarge, ProviderError, ProviderTimeout, quote

MAX_RESULT_BYTES: Final = 10 * 1024 * 1024

_UNREACHABLE_CODE: Final = -32950
_REFUSED_CODE: Final = -32951
_TOO_LARGE_CODE: Final = -32952
_INVALID_CODE: Final = -32953
_SESSION_GONE_CODE: Final = -32954

TOO_LARGE: Final = ErrorData(code=_TOO_LARGE_CODE, message="too large")
BROKEN_OFF: Final = ErrorData(code=CONNECTION_CLOSED, message="broken off")
INVALID_ANSWER: Final = ErrorData(code=_INVALID_CODE, message="invalid answer")

SESSION_GONE: Final = ErrorData(code=_SESSION_GONE_CODE, message="session gone")


def unreachable(reason: str) -> ErrorData:
    """Say that a request did not reach the server, or its answer not us."""
    return ErrorData(code=_UNREACHABLE_CODE, message=reason)


def refused(reason: str, *, is_retryable: bool, retry_after_seconds: float | None = None) -> ErrorData:
    """Say that the server, or what stands before it, did not let a request through."""
    data = {"retryable": is_retryable, "retry_after_seconds": retry_after_seconds}
    return ErrorData(code=_REFUSED_CODE, message=reason, data=data)


def is_session_gone(error: MCPError) -> bool:
    """Tell whether the request was not looked at, because the server forgot the session."""
    return error.error.code == _SESSION_GONE_CODE


def is_connection_gone(error: MCPError) -> bool:
    """Tell whether the connection ended before the answer, and with it the session."""
    return error.error.code == CONNECTION_CLOSED and not _is_event_too_large(error)


def _is_event_too_large(error: MCPError) -> bool:
    # What the client of the `mcp` package says of an event over its limit; only that call is broken off.
    return error.error.code == CONNECTION_CLOSED and "byte limit" in error.error.message


def translate(error: MCPError, server_id: str, secrets: Sequence[str]) -> ProviderError:
    """Return what a caller is told."""
    code, said = error.error.code, quote(error.error.message, secrets)
    who = f"Tool server {server_id!r}"
    if code == REQUEST_TIMEOUT:
        return ProviderTimeout(f"{who} did not answer in time; the call was cancelled.")
    if code == _TOO_LARGE_CODE or _is_event_too_large(error):
        return AnswerTooLarge(f"{who} answered more than {MAX_RESULT_BYTES} bytes; ask it for less at once.")
    if code == CONNECTION_CLOSED:
        # Not to be repeated blindly: a tool may have done its work before it was lost.
        return ProviderError(f"{who} ended or broke off before it answered; whether it did the work is not known.")
    if code == _UNREACHABLE_CODE:
        return ProviderError(f"{who} cannot be reached: {said}.", retryable=True)
    if code == _INVALID_CODE:
        return ProviderError(f"{who} answered what is no JSON, or no answer.")
    if code == _REFUSED_CODE:
        # Any server can use our code, and give what it likes with it.
        data: dict[str, Any] = error.error.data if isinstance(error.error.data, dict) else {}
        after = data.get("retry_after_seconds")
        return ProviderError(
            f"{who} {said}.",
            retryable=bool(data.get("retryable")),
            retry_after_seconds=after if isinstance(after, float) else None,
        )
    if code == _SESSION_GONE_CODE:
        return ProviderError(f"{who} forgets its sessions as soon as they are open.", retryable=True)
    return ProviderError(f"{who} reports error {code}: {said}")
