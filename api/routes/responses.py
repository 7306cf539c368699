"""How routes describe the answers that refuse, for the OpenAPI document."""

from typing import Any

from api.problems import PROBLEM_TYPE

PROBLEM_SCHEMA = "ProblemDocument"

_TEXTS = {
    400: "Invalid JSON, cursor or position.",
    401: "No valid key.",
    403: "The key lacks the scope.",
    404: "Unknown, or of another workspace.",
    409: "A stored fact stands against the request.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    416: "The range is not within the content.",
    422: "A field is invalid; `errors` names it.",
    429: "Too many calls; `Retry-After` says when to go on.",
    502: "The host, or what it called, failed.",
    504: "The deadline of the run passed before the answer.",
    503: "The database or the engine cannot be reached; `Retry-After` says when to try again.",
}
_ALWAYS = (401, 403, 422, 503)
_WITH_BODY = (400, 413, 415)


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """Describe what a route may refuse with, besides what every route may.

    Args:
        statuses: Further statuses.
        body: The route reads a body.
    """
    return _described({*_ALWAYS, *statuses, *(_WITH_BODY if body else ())})


def host_problems(*, is_stream: bool) -> dict[int | str, dict[str, Any]]:
    """Describe what a method of the host API may refuse with."""
    described = _described({400, 401, 403, 404, 413, 422, 429, 502, 503, 504})
    if is_stream:
        described[200] = {
            "description": "`item` frames, then `end` or `error`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    return described


def _described(statuses: set[int]) -> dict[int | str, dict[str, Any]]:
    content = {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{PROBLEM_SCHEMA}"}}}
    return {status: {"description": _TEXTS[status], "content": content} for status in sorted(statuses)}
