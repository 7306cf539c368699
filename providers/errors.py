"""How a call of a provider fails.

ProviderError
├── ProviderTimeout
├── ArgumentRefused
├── AnswerTooLarge
└── NotConfigured

Their messages reach the runner that made the call. They quote neither a header nor an environment variable nor
the text of a library's exception; of what the other side says, the beginning, without the secrets it was given.
"""

import re
from collections.abc import Iterable
from typing import Final

MAX_QUOTED_CHARACTERS: Final = 300

# What is shorter is found in ordinary text as well, and no secret worth the name.
_MIN_SECRET_CHARACTERS: Final = 6
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+")


class ProviderError(Exception):
    """A call that has no answer.

    Args:
        message: What went wrong and what to do about it, free of secrets.
        retryable: The same call may succeed later.
        retry_after_seconds: When, if the other side says so.
    """

    def __init__(self, message: str, *, retryable: bool = False, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class ProviderTimeout(ProviderError):
    """The other side did not answer in time."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message, retryable=retryable)


class ArgumentRefused(ProviderError):
    """An argument cannot be sent; ``field`` is its path."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message


class AnswerTooLarge(ProviderError):
    """The answer is over its limit."""


class NotConfigured(ProviderError):
    """This process does not make such calls; the message says which setting would change that."""


def quote(text: str, secrets: Iterable[str]) -> str:
    """Quote what the other side says: its first 300 characters on one line, without ``secrets``."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET_CHARACTERS:
            # Before it is cut: half a key at the end of the quotation is still half a key.
            text = text.replace(secret, "[secret]")
    return _UNPRINTABLE.sub(" ", text).strip()[:MAX_QUOTED_CHARACTERS]
