"""What an endpoint answers: whole answers, chunks, scores, usage."""

import json
import math
import uuid
from typing import Any, Final, NoReturn, cast

from pydantic import ValidationError

from providers.errors import ProviderError, quote
from runhost.protocol import Usage
from runhost.protocol.content import FunctionCall, Message, MessageChunk, ToolCall
from runhost.protocol.host_api import ModelAnswer, RerankParams, RerankResult, RerankScore

MAX_FINISH_REASON_CHARACTERS: Final = 100
MAX_CALL_ID_CHARACTERS: Final = 255

_FIRST_SERVER_ERROR: Final = 500
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429})

# Names that some endpoints have for the same counts.
_OTHER_NAMES: Final = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "input_tokens_details": "input_token_details",
    "output_tokens_details": "output_token_details",
}
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def parse_object(body: bytes, secrets: list[str]) -> dict[str, Any]:
    """Read a JSON object that is no report of an error.

    Raises:
        ProviderError: It is none, or reports an error, as some endpoints do with status 200 or within a stream.
    """
    try:
        document = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise broken("sent no valid JSON") from None
    if not isinstance(document, dict):
        raise broken("sent JSON that is no object")
    if (message := error_message(document)) is not None:
        error = f"The model endpoint reports: {quote(message, secrets)}"
        raise ProviderError(error, retryable=is_retryable(_error_status(document)))
    return cast("dict[str, Any]", document)


def error_message(body: object) -> str | None:
    """Find the message in one of the forms that error bodies have, None if it is no error body.

    Forms: `{"error": {"message": ...}}`, `{"error": "..."}`, `{"object": "error", "message": ...}`.
    """
    if not isinstance(body, dict):
        return None
    error = body.get("error") or (body if body.get("object") == "error" else None)
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or "no message"
    return str(error) if error else None


def is_retryable(status: int) -> bool:
    """Tell whether a request that was answered with this status may succeed later."""
    return status >= _FIRST_SERVER_ERROR or status in _RETRYABLE_STATUSES


def broken(what: str) -> ProviderError:
    """The endpoint answered, and not as its interface says."""
    return ProviderError(f"The model endpoint {what}.", retryable=True)


def read_answer(body: bytes, secrets: list[str]) -> ModelAnswer:
    """Read a whole answer.

    Raises:
        ProviderError: It is none.
    """
    document = parse_object(body, secrets)
    choice = _first_choice(document)
    message = choice.get("message") if choice else None
    if not isinstance(message, dict):
        raise broken("answered without a message")
    fragments = ToolCallFragments()
    calls = fragments.read(message.get("tool_calls"))
    text = _text(message.get("content"))
    if text is None and not calls:
        refusal = message.get("refusal")
        text = refusal if isinstance(refusal, str) else ""
    return ModelAnswer(
        message=Message(role="assistant", content=text, tool_calls=calls or None),
        usage=read_usage(document.get("usage")),
    )


def read_scores(body: bytes, params: RerankParams, secrets: list[str]) -> RerankResult:
    """Read scores, put in order.

    Raises:
        ProviderError: They are not scores of the documents that were sent.
    """
    document = parse_object(body, secrets)
    results = document.get("results")
    if not isinstance(results, list):
        raise broken("answered without 'results'; check that it reranks")
    scores = {score.index: score for entry in results if (score := _score(entry, len(params.documents)))}
    if len(scores) != len(results):
        raise broken("answered scores that are not of the documents it was sent")
    ordered = sorted(scores.values(), key=lambda score: (-score.relevance_score, score.index))
    return RerankResult(scores=ordered[: params.top_k], usage=read_usage(document.get("usage")))


def read_usage(reported: object) -> Usage | None:
    """Read usage, leaving out what is no count; what counts nothing at all is unknown (D-32)."""
    if not isinstance(reported, dict):
        return None
    counts = cast("dict[str, Any]", reported)
    for other, name in _OTHER_NAMES.items():
        if counts.get(name) is None and counts.get(other) is not None:
            counts = {**counts, name: counts[other]}
    known = {name: counts[name] for name in Usage.model_fields if _is_usable(name, counts.get(name))}
    if not any(known.get(name) for name in _COUNTS):
        # No prompt has no tokens: these zeros stand for "not counted".
        return None
    return Usage.model_validate(known)


class ChunkReader:
    """Turns the chunks of one streamed answer into ours.

    Attributes:
        usage: As last reported; None as long as it is not.
        is_finished: The model said why it stopped.
    """

    def __init__(self, secrets: list[str]) -> None:
        self.usage: Usage | None = None
        self.is_finished = False
        self._secrets = secrets
        self._fragments = ToolCallFragments()

    def read(self, data: bytes) -> MessageChunk | None:
        """Read the data of one event; None where it says nothing new.

        Raises:
            ProviderError: It is no chunk, or reports an error.
        """
        document = parse_object(data, self._secrets)
        if (usage := read_usage(document.get("usage"))) is not None:
            self.usage = usage
        choice = _first_choice(document)
        if choice is None:
            return None
        # Endpoints that do not stream answer with the whole message at once.
        delta = choice.get("delta") or choice.get("message")
        delta = cast("dict[str, Any]", delta) if isinstance(delta, dict) else {}
        reason = choice.get("finish_reason")
        reason = reason[:MAX_FINISH_REASON_CHARACTERS] if isinstance(reason, str) and reason else None
        self.is_finished = self.is_finished or reason is not None
        text = _text(delta.get("content")) or _text(delta.get("refusal"))
        calls = self._fragments.read(delta.get("tool_calls"))
        if not text and not calls and reason is None:
            return None
        return MessageChunk(
            content=text or None, tool_calls=calls or None, finish_reason=reason, is_final=reason is not None
        )


class ToolCallFragments:
    """Gives every fragment of a tool call the id that only its first one carries on the wire."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}

    def read(self, fragments: object) -> list[ToolCall]:
        """Read the fragments of one chunk, or the calls of a whole message."""
        if not isinstance(fragments, list):
            return []
        return [
            self._read(place, cast("dict[str, Any]", fragment))
            for place, fragment in enumerate(fragments)
            if isinstance(fragment, dict)
        ]

    def _read(self, place: int, fragment: dict[str, Any]) -> ToolCall:
        index = fragment.get("index")
        index = index if isinstance(index, int) else place
        given = fragment.get("id")
        if isinstance(given, str) and given:
            self._ids[index] = given[:MAX_CALL_ID_CHARACTERS]
        function = fragment.get("function")
        function = cast("dict[str, Any]", function) if isinstance(function, dict) else {}
        # Some endpoints give no ids, and a result must be able to name its call.
        call_id = self._ids.setdefault(index, f"call_{uuid.uuid4().hex}")
        return ToolCall(
            id=call_id, function=FunctionCall(name=_plain(function.get("name")), arguments=_arguments(function))
        )


def _error_status(document: dict[str, Any]) -> int:
    """Return the status that an error body names, that of a failed server where it names none."""
    error = document.get("error")
    code = error.get("code") if isinstance(error, dict) else document.get("code")
    return code if isinstance(code, int) else _FIRST_SERVER_ERROR


def _arguments(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    # Some endpoints send the object itself where its JSON text belongs.
    return json.dumps(arguments) if isinstance(arguments, dict) else _plain(arguments)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else ""


def _first_choice(document: dict[str, Any]) -> dict[str, Any] | None:
    choices = document.get("choices")
    if not isinstance(choices, list):
        return None
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return cast("dict[str, Any]", choice)
    return None


def _text(content: object) -> str | None:
    """Return the text of a content, which is a string, null or a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _score(entry: object, documents: int) -> RerankScore | None:
    if not isinstance(entry, dict):
        return None
    index, score = entry.get("index"), entry.get("relevance_score")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < documents:
        return None
    if not isinstance(score, int | float) or isinstance(score, bool) or not math.isfinite(score):
        return None
    return RerankScore(index=index, relevance_score=float(score))


def _is_usable(name: str, value: object) -> bool:
    if value is None:
        return False
    try:
        Usage.model_validate({name: value})
    except ValidationError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
