"""What went wrong, as RFC 9457 documents (API.md). One table says which error answers with what."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Match
from starlette.types import Scope

from api.encoding import JsonResponse
from host_api.authentication import CredentialsRefused
from host_api.errors import HostCallError
from runhost.protocol import ErrorCode, JsonObject
from runhost.protocol.errors import field_path
from stores.availability import is_unavailable
from stores.cursors import InvalidCursor
from stores.errors import Conflict, IdempotencyKeyInUse, IdempotencyKeyReused, NotFound

PROBLEM_TYPE: Final = "application/problem+json"
SHOWN_CHARACTERS: Final = 100
SHOWN_FAULTS: Final = 20
RETRY_AFTER_SECONDS: Final = 1

_METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")

# Headers and variables hold secrets under any name, and an address may be refused because it holds one.
_SECRET = re.compile(r"key|token|secret|password|authorization|credential|^(headers|env|url|base_url)\b", re.IGNORECASE)
_TITLES: Mapping[ErrorCode, str] = {
    ErrorCode.UNAUTHORIZED: "Not authorized",
    ErrorCode.NOT_FOUND: "Not found",
    ErrorCode.PAYLOAD_TOO_LARGE: "The body is too large",
    ErrorCode.INVALID_ARGUMENT: "Invalid argument",
    ErrorCode.RUNTIME_ERROR: "The host failed",
    ErrorCode.RUN_NOT_FOUND: "No such run",
    ErrorCode.RUN_TERMINAL: "The run has ended",
    ErrorCode.EVENT_CONFLICT: "The event id is known with other content",
    ErrorCode.BINDING_AMBIGUOUS: "Several bindings match",
    ErrorCode.IDEMPOTENCY_KEY_REUSED: "The idempotency key was used with another request",
    ErrorCode.IDEMPOTENCY_KEY_IN_USE: "A request with this idempotency key is being answered",
    ErrorCode.CURSOR_INVALID: "Invalid cursor",
    ErrorCode.ENGINE_UNAVAILABLE: "The engine is unavailable",
    ErrorCode.RATE_LIMITED: "Too many calls",
    ErrorCode.DEADLINE_EXCEEDED: "The deadline of the run has passed",
}
_HOST_CALL_STATUSES: Mapping[ErrorCode, int] = {
    ErrorCode.UNAUTHORIZED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.DEADLINE_EXCEEDED: 504,
    ErrorCode.RUNTIME_ERROR: 502,
}


class FieldFault(BaseModel):
    """A field at fault. ``value`` is what was sent, cut at 100 characters; absent for secrets and objects."""

    field: str
    message: str
    value: str | None = None


class ProblemDocument(BaseModel):
    """An RFC 9457 problem document.

    Attributes:
        type: Stable URI of this kind of problem, `urn:runhost:problem:<code>`.
        title: The kind of problem, for people.
        status: The HTTP status.
        detail: This occurrence, and what to do next.
        instance: Path of the request.
        code: The kind of problem, for programs.
        retryable: The same request may succeed later.
        run_id: The run that stands against the request.
        errors: Fields at fault, at most 20.
        binding_ids: The bindings between which there is no choice.
        details: Facts for programs, of the host API.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    retryable: bool
    run_id: str | None = None
    errors: list[FieldFault] = Field(default_factory=list)
    binding_ids: list[str] | None = None
    details: dict[str, Any] | None = None


class Problem(Exception):
    """An answer that refuses.

    Args:
        status: The HTTP status.
        code: What clients tell problems apart by.
        detail: What happened and what to do next; identifiers in it are quoted with repr.
        retryable: The same request may succeed later.
        faults: The fields at fault.
        headers: Further headers of the answer.
        more: Further members of the document, such as ``run_id``.
    """

    def __init__(
        self,
        status: int,
        code: ErrorCode,
        detail: str,
        *,
        retryable: bool = False,
        faults: Sequence[FieldFault] = (),
        headers: Mapping[str, str] | None = None,
        more: JsonObject | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.faults = faults
        self.headers = dict(headers or {})
        self.more = more or {}

    def document(self, instance: str) -> JsonObject:
        """Return the document; ``instance`` is the path of the request."""
        document: JsonObject = {
            "type": f"urn:runhost:problem:{self.code}",
            "title": _TITLES.get(self.code, self.code.value),
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code.value,
            "retryable": self.retryable,
        }
        if self.faults:
            document["errors"] = [fault.model_dump(exclude_none=True) for fault in self.faults]
        return document | self.more


def problem_response(problem: Problem, instance: str) -> JsonResponse:
    """Return the answer that says what went wrong."""
    headers = dict(problem.headers)
    if problem.status == 503:
        headers.setdefault("Retry-After", str(RETRY_AFTER_SECONDS))
    return JsonResponse(problem.document(instance), problem.status, headers, PROBLEM_TYPE)


async def answer_problem(request: Request, error: Exception) -> JsonResponse:
    """Answer an error that FastAPI raised; the handler of all of them."""
    problem = problem_for(error)
    if problem.status == 405:
        problem.headers["Allow"] = ", ".join(_methods_of_path(request))
    return problem_response(problem, instance_of(request.scope))


def _methods_of_path(request: Request) -> list[str]:
    """Return what the path takes; each of its methods is a route of its own, and the error knows one of them."""
    return [method for method in _METHODS if _is_routed(request, method)]


def _is_routed(request: Request, method: str) -> bool:
    scope = dict(request.scope, method=method)
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


def instance_of(scope: Scope) -> str:
    """Return what names the occurrence of a problem: the path of its request, as a URI reference."""
    return quote(scope["path"], safe="/:@!$&'()*+,;=")


def problem_for(error: Exception) -> Problem:
    """Return what to answer for an error. An unknown one says nothing of itself: it may quote anybody's data."""
    for kind, describe in _TABLE:
        if isinstance(error, kind):
            return describe(error)
    if is_unavailable(error) or isinstance(error, PoolTimeout):
        return Problem(
            503, ErrorCode.ENGINE_UNAVAILABLE, "The database cannot be reached; repeat the request.", retryable=True
        )
    return Problem(500, ErrorCode.RUNTIME_ERROR, "The host failed to answer. Its log says where.")


def invalid(field: str, message: str, value: str | None = None, *, status: int = 400) -> Problem:
    """Return the problem of one field with an invalid value."""
    return Problem(
        status,
        ErrorCode.INVALID_ARGUMENT,
        f"{field}: {message}",
        faults=[FieldFault(field=field, message=message, value=_shown(field, value))],
    )


def _of_http(error: HTTPException) -> Problem:
    headers = error.headers
    if error.status_code == 404:
        return Problem(404, ErrorCode.NOT_FOUND, "There is nothing at this path; see /openapi.json.", headers=headers)
    if error.status_code == 405:
        detail = "This path does not take that method; see the Allow header and /openapi.json."
        return Problem(405, ErrorCode.INVALID_ARGUMENT, detail, headers=headers)
    if error.status_code == 413:
        return Problem(413, ErrorCode.PAYLOAD_TOO_LARGE, error.detail, headers=headers)
    # What is left comes from reading a body: not UTF-8, nested too deep, a number of thousands of digits.
    detail = f"The body cannot be read as JSON: {type(error.__cause__).__name__}."
    return Problem(error.status_code, ErrorCode.INVALID_ARGUMENT, detail, headers=headers)


def _of_request(error: RequestValidationError) -> Problem:
    if isinstance(error.body, bytes):
        detail = "The body is not JSON by its Content-Type; send application/json."
        return Problem(415, ErrorCode.INVALID_ARGUMENT, detail)
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        detail = f"The body is not valid JSON: {found[0]['ctx']['error']} at character {found[0]['loc'][1]}."
        return Problem(400, ErrorCode.INVALID_ARGUMENT, detail)
    faults = [_fault(entry) for entry in found[:SHOWN_FAULTS]]
    detail = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:3])
    return Problem(422, ErrorCode.INVALID_ARGUMENT, detail, faults=faults)


def _fault(entry: Mapping[str, Any]) -> FieldFault:
    part, *location = entry["loc"]
    field = field_path(tuple(location)) if location else part
    value = None if entry["type"] == "missing" else _shown(field, entry.get("input"))
    return FieldFault(field=field, message=entry["msg"], value=value)


def _shown(field: str, value: object) -> str | None:
    """Show a value that was sent: not where it may be a secret, or may hold one."""
    if isinstance(value, dict | list | bytes) or value is None or _SECRET.search(field):
        return None
    text = value if isinstance(value, str) else repr(value)
    shown = _printable(text[:SHOWN_CHARACTERS])
    return shown if len(text) <= SHOWN_CHARACTERS else shown + "..."


def _printable(text: str) -> str:
    """Escape what cannot be printed."""
    return repr(text)[1:-1]


def _of_cursor(error: InvalidCursor) -> Problem:
    return Problem(
        400,
        ErrorCode.CURSOR_INVALID,
        f"The cursor cannot be used: {error}. Start without one, and keep the filters while paging.",
        faults=[FieldFault(field="cursor", message=str(error))],
    )


def _of_host_call(error: HostCallError) -> Problem:
    headers: dict[str, str] = {}
    status = _HOST_CALL_STATUSES.get(error.code, 500)
    if isinstance(error, CredentialsRefused):
        status, headers["WWW-Authenticate"] = 401, 'Bearer realm="runhost run"'
    if error.retry_after_seconds is not None:
        # Whole seconds, as the header has it; the exact number is in the details.
        headers["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
    details = error.as_error().details
    more: JsonObject = {"details": details} if details else {}
    return Problem(status, error.code, error.message, retryable=error.retryable, headers=headers, more=more)


# The first kind that fits answers.
_TABLE: Sequence[tuple[type[Exception], Callable[[Any], Problem]]] = (
    (Problem, lambda error: error),
    (RequestValidationError, _of_request),
    (HTTPException, _of_http),
    (InvalidCursor, _of_cursor),
    (NotFound, lambda error: Problem(404, error.code, str(error))),
    (Conflict, lambda error: Problem(409, error.code, str(error))),
    (HostCallError, _of_host_call),
    (IdempotencyKeyInUse, lambda error: Problem(409, error.code, str(error), retryable=True)),
    (IdempotencyKeyReused, lambda error: Problem(422, error.code, str(error))),
)
