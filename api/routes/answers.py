"""Turning an answer into a response."""

from api.acceptance import Answer
from api.encoding import JSON_TYPE, JsonResponse
from api.problems import PROBLEM_TYPE


def answer_with(answer: Answer) -> JsonResponse:
    """Return the response that gives this answer."""
    headers = dict(answer.headers)
    if answer.is_replayed:
        headers["Idempotent-Replayed"] = "true"
    return JsonResponse(answer.body, answer.status, headers, JSON_TYPE if answer.status < 400 else PROBLEM_TYPE)
