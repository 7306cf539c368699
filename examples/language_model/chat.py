"""Requests and answers of `/v1/chat/completions`, in OpenAI's shapes."""

import time
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from examples.language_model.engine import Sampling, Turn
from examples.language_model.errors import ApiError

MAX_MESSAGES = 200
MAX_CONTENT_CHARACTERS = 50_000
DEFAULT_MAX_TOKENS = 256
# A model of this size loses the thread at the usual 1.0.
DEFAULT_TEMPERATURE = 0.2

# Known parameters that would change the answer and that this server cannot honour: refused, never ignored.
UNSUPPORTED = (
    "audio",
    "function_call",
    "functions",
    "logprobs",
    "response_format",
    "stop",
    "tool_choice",
    "tools",
)

Content = Annotated[str, Field(max_length=MAX_CONTENT_CHARACTERS)]


class TextPart(BaseModel):
    """One part of a message; other kinds of parts are refused."""

    type: Literal["text"]
    text: Content


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: Content | list[TextPart]

    def turn(self) -> Turn:
        text = self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)
        return Turn("system" if self.role == "developer" else self.role, text)


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel, extra="allow"):
    """What a client may ask for; unknown fields are kept, so that `UNSUPPORTED` ones can be refused."""

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    n: Literal[1] | None = None

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def sampling(self, room: int) -> Sampling:
        """Return the sampling; `room` is how many tokens the context still holds."""
        wanted = self.max_completion_tokens or self.max_tokens or DEFAULT_MAX_TOKENS
        return Sampling(
            max_tokens=min(wanted, room),
            temperature=DEFAULT_TEMPERATURE if self.temperature is None else self.temperature,
            top_p=0.95 if self.top_p is None else self.top_p,
            seed=self.seed,
        )


def parse_request(body: bytes) -> ChatRequest:
    """Read a request body.

    Raises:
        ApiError: 400, names the first field that is wrong.
    """
    try:
        request = ChatRequest.model_validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        param = ".".join(str(part) for part in first["loc"]) or None
        raise ApiError(400, f"{param or 'body'}: {first['msg']}", code="invalid_value", param=param) from None
    for name in UNSUPPORTED:
        if (request.model_extra or {}).get(name):
            raise ApiError(400, f"{name}: not supported here", code="unsupported_parameter", param=name)
    return request


class AnswerWriter:
    """Builds the bodies of one answer; every chunk carries the same id and time."""

    def __init__(self, model: str, *, prompt_tokens: int, include_usage: bool) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}
        self._prompt_tokens = prompt_tokens
        self._include_usage = include_usage

    def chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return {**chunk, "usage": None} if self._include_usage else chunk

    def usage_chunk(self, completion_tokens: int) -> dict[str, Any]:
        usage = self._usage(completion_tokens)
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage}

    def whole(self, text: str, finish_reason: str, completion_tokens: int) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        usage = self._usage(completion_tokens)
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def _usage(self, completion_tokens: int) -> dict[str, int]:
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": self._prompt_tokens + completion_tokens,
        }
