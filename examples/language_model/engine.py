"""What the server needs of a model, and what it says to it."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation as the template sees it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an answer.

    Each step without `finish_reason` is one generated token; its `text` is empty while a character is
    incomplete. The last step has the `finish_reason` and no token of its own.
    """

    text: str
    finish_reason: Literal["stop", "length"] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose tokens.

    `temperature` 0 takes the likeliest token always; `top_p` cuts the tail of the distribution; the same
    `seed` leads to the same answer.
    """

    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None = None


class Engine(Protocol):
    """What the server needs of a model."""

    name: str
    context_tokens: int

    def tokens_of(self, conversation: Sequence[Turn]) -> list[int]:
        """Return the prompt; any thread may ask."""
        ...

    def generate(self, prompt: list[int], sampling: Sampling, stop: threading.Event) -> Iterator[Step]:
        """Answer; ends early and without a last step once `stop` is set. One caller at a time."""
        ...
