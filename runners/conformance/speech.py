"""What the models and tools of the kit say."""

from collections.abc import Iterator, Sequence
from typing import Final

from runhost.protocol import ContentElement, Usage
from runners.conformance.scenario import LONG_ANSWER_BYTES, HostManner

USAGE: Final = Usage(prompt_tokens=11, completion_tokens=7, total_tokens=18)

_REPEATED_CHARACTERS: Final = 200
_LONG_PIECE: Final = "The same sentence again and again. " * 1_872
_PIECES: Final = 4


def reply_to(text: str, manner: HostManner) -> str:
    """Answer a text by its beginning, so that one run's answer is not another's; 5 MiB where asked for."""
    reply = f"You said: {text[:_REPEATED_CHARACTERS]}"
    if manner is HostManner.ANSWERS_AT_LENGTH:
        reply += "".join(_long_pieces())
    return reply


def pieces_of(reply: str) -> Iterator[str]:
    """Cut an answer into four pieces, or into pieces of 64 KiB if it is long."""
    size = len(_LONG_PIECE) if len(reply) > len(_LONG_PIECE) else max(1, -(-len(reply) // _PIECES))
    return (reply[start : start + size] for start in range(0, len(reply), size))


def text_of(content: str | Sequence[ContentElement] | None) -> str:
    """Return the text of a message's content."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text or "" for part in content)


def _long_pieces() -> Iterator[str]:
    return (_LONG_PIECE for _ in range(-(-LONG_ANSWER_BYTES // len(_LONG_PIECE))))
