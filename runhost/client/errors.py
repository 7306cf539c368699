"""What can go wrong between a client and a host.

ClientError
 ├─ ApiProblem          the host answered with a problem document
 ├─ HostUnreachable     nobody answered, or the answer broke off
 └─ UnexpectedAnswer    somebody answered who does not speak this API
"""

from typing import Final, cast

from runhost.protocol import JsonObject

_MAX_SHOWN_FAULTS: Final = 5


class ClientError(Exception):
    """Base of this package's errors; the text says what happened and what to do."""


class HostUnreachable(ClientError):
    """No host answered at the address, after all tries; a write may or may not have been carried out."""


class UnexpectedAnswer(ClientError):
    """The answer with this HTTP status is neither what the API gives nor a problem document."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ApiProblem(ClientError):
    """The host refused, or failed (RFC 9457, API.md).

    Attributes:
        status: HTTP status.
        code: What programs tell problems apart by, such as `run_not_found`.
        detail: This occurrence, and what to do next.
        errors: Fields at fault, each with `field`, `message` and perhaps `value`.
        retryable: The same request may succeed later.
        retry_after_seconds: When the host says that may be.
        document: The whole problem document.
    """

    def __init__(self, status: int, document: JsonObject, retry_after_seconds: float | None = None) -> None:
        self.status = status
        self.document = document
        self.code = _text(document, "code") or "unknown"
        self.detail = _text(document, "detail") or _text(document, "title") or f"HTTP status {status}"
        self.errors = _faults(document)
        self.retryable = document.get("retryable") is True
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{self.code} ({status}): {self.detail}{self._more_faults()}")

    def _more_faults(self) -> str:
        """Name the fields that the detail does not name."""
        lines = [f"\n  {fault.get('field')}: {fault.get('message')}" for fault in self.errors]
        return "".join(lines[:_MAX_SHOWN_FAULTS]) if len(lines) > 1 else ""


def _text(document: JsonObject, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _faults(document: JsonObject) -> list[JsonObject]:
    found = document.get("errors")
    return [cast("JsonObject", fault) for fault in found if isinstance(fault, dict)] if isinstance(found, list) else []
