"""An estimate of tokens for endpoints that do not count them.

Four characters a token holds for English only: a character of Chinese, Japanese or Korean is about one token, one
of another alphabet about half of one, an emoji two. Classes are told apart by the length of their UTF-8, which
counts in C: a prompt of a megabyte must not stop the event loop.
"""

import json
import math
from typing import Any, Final

from runhost.protocol.content import ContentElement
from runhost.protocol.host_api import CountTokensParams

MESSAGE_TOKENS: Final = 4
"""Role and separators around each message."""

IMAGE_TOKENS: Final = 1_000
"""A picture at full detail costs between 750 and 1,500."""

LOW_DETAIL_IMAGE_TOKENS: Final = 85

_WEIGHTS: Final = ((0x00, 0x7F, 0.25), (0xC0, 0xDF, 0.5), (0xE0, 0xEF, 1.0), (0xF0, 0xF7, 2.0))
# For each class of first bytes, all other bytes: what remains without these is one byte a character.
_OTHERS: Final = tuple(
    (bytes(byte for byte in range(256) if not low <= byte <= high), weight) for low, high, weight in _WEIGHTS
)


def estimate_tokens(params: CountTokensParams) -> int:
    """Return about how many tokens a prompt has, rather too many than too few."""
    tokens = 0.0
    for message in params.messages:
        tokens += MESSAGE_TOKENS
        if isinstance(message.content, str):
            tokens += _text_tokens(message.content)
        else:
            tokens += sum(_part_tokens(part) for part in message.content or ())
        for call in message.tool_calls or ():
            tokens += MESSAGE_TOKENS + _text_tokens(call.function.name) + _text_tokens(call.function.arguments)
    for function in params.funcs or ():
        described: dict[str, Any] = function.model_dump(mode="json")
        tokens += MESSAGE_TOKENS + _text_tokens(json.dumps(described, ensure_ascii=False))
    return math.ceil(tokens)


def _part_tokens(part: ContentElement) -> float:
    if part.type in {"image_url", "image_base64"}:
        is_low = part.image_url is not None and part.image_url.detail == "low"
        return LOW_DETAIL_IMAGE_TOKENS if is_low else IMAGE_TOKENS
    if part.file_base64 is not None:
        # Mostly text once it is decoded, of which four bytes are a token.
        return len(part.file_base64) * 3 / 16
    return _text_tokens(part.text or part.file_url or "")


def _text_tokens(text: str) -> float:
    encoded = text.encode("utf-8", "surrogatepass")
    return sum(len(encoded.translate(None, others)) * weight for others, weight in _OTHERS)
