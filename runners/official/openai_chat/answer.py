"""What an OpenAI-compatible endpoint answers: its chunks, put together (RUNNERS R-10)."""

import json
from typing import Any, Final, cast

from pydantic import ValidationError

from runhost.protocol import RunFailureCode, Usage
from runners.official.openai_chat.failures import ChatFailure, broken_answer, error_message, quote_text

MAX_ANSWER_BYTES: Final = 768 * 1024
"""UTF-8 of a whole answer: escaped as JSON it still fits one result, whose limit is 2 MiB (D-28)."""

MAX_FINISH_REASON_CHARACTERS: Final = 100

_END_MARK: Final = b"[DONE]"


class Answer:
    """One answer while it arrives.

    Attributes:
        finish_reason: Why the model stopped; None until it says so.
        usage: Tokens as last reported; None as long as they are not (D-32).
        ended: The end mark was read, nothing follows.
        skipped: Chunks of an unknown shape.
    """

    def __init__(self, secret: str) -> None:
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.ended = False
        self.skipped = 0
        self._secret = secret
        self._texts: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the text is missing; the usage may be."""
        return self.ended or self.finish_reason is not None

    def add(self, data: bytes) -> str:
        """Take the data of one event and return the text it adds, often none.

        Raises:
            ChatFailure: it is no JSON, an error report, or the answer grows too long.
        """
        if data.strip() == _END_MARK:
            self.ended = True
            return ""
        return self._take(_parse(data), "delta")

    def add_whole(self, body: bytes) -> None:
        """Take an answer that came in one piece.

        Raises:
            ChatFailure: as `add`.
        """
        self._take(_parse(body), "message")
        self.ended = True

    def _take(self, chunk: dict[str, Any], part: str) -> str:
        if (message := error_message(chunk)) is not None:
            raise broken_answer(f"the model endpoint reports {quote_text(message, self._secret)!r}")
        if (usage := _usage(chunk.get("usage"))) is not None:
            self.usage = usage
        choice = _first_choice(chunk)
        if choice is None:
            self.skipped += not isinstance(chunk.get("choices"), list)
            return ""
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.finish_reason = reason[:MAX_FINISH_REASON_CHARACTERS]
        text = _text(choice.get(part))
        if text:
            self._append(text)
        return text

    def _append(self, text: str) -> None:
        self._size += len(text.encode("utf-8", errors="surrogatepass"))
        if self._size > MAX_ANSWER_BYTES:
            error = f"the answer is over {MAX_ANSWER_BYTES} bytes; set 'max_tokens'"
            raise ChatFailure(RunFailureCode.RUNNER_ERROR, error)
        self._texts.append(text)


def _parse(data: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise broken_answer("the model endpoint sent no valid JSON") from error
    if not isinstance(chunk, dict):
        raise broken_answer("the model endpoint sent JSON that is no object")
    return cast("dict[str, Any]", chunk)


def _first_choice(chunk: dict[str, Any]) -> dict[str, Any] | None:
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return None
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return None


def _text(message: object) -> str:
    """Return the text of a message or delta, whose content is a string, null or a list of parts."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _usage(reported: object) -> Usage | None:
    """Read the usage, leaving out what is no count."""
    if not isinstance(reported, dict):
        return None
    known = {name: reported[name] for name in Usage.model_fields if _is_usable(name, reported.get(name))}
    return Usage.model_validate(known) if known else None


def _is_usable(name: str, value: object) -> bool:
    if value is None:
        return False
    try:
        Usage.model_validate({name: value})
    except ValidationError:
        return False
    return True
