"""How things that go wrong with a chat endpoint end a run (PROTOCOL 10, SECURITY G-5).

Nothing here quotes a header, an environment variable's value or an exception's text, since libraries put
either into theirs; of what a provider says, at most 200 characters.
"""

import json
import re
from typing import Final

from runhost.protocol import RunFailureCode

CONFIG: Final = "runner.config"
UNAUTHORIZED: Final = "runner.unauthorized"

MAX_QUOTED_CHARACTERS: Final = 200

_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429})
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+")


class ChatFailure(Exception):
    """Ends the run as failed; becomes one `run.failed`.

    Attributes:
        code: failure code of the run.
        error: what went wrong and what to do, free of secrets.
        retryable: whether the same run may succeed later (P-S8).
    """

    def __init__(self, code: str, error: str, *, retryable: bool = False) -> None:
        super().__init__(error)
        self.code = code
        self.error = error
        self.retryable = retryable


def timed_out(seconds: float) -> ChatFailure:
    """The endpoint was not reached, or its answer not finished, in the time that there was."""
    error = f"the model endpoint did not answer within {seconds:.1f} s"
    return ChatFailure(RunFailureCode.RUNNER_TIMEOUT, error, retryable=True)


def broken_answer(reason: str) -> ChatFailure:
    """The answer began and cannot be trusted to be whole."""
    return ChatFailure(RunFailureCode.RUNNER_ERROR, f"the answer broke off: {reason}", retryable=True)


def refused_request(status: int, body: bytes, *, key_name: str, secret: str) -> ChatFailure:
    """The endpoint answered with something other than success.

    Args:
        status: HTTP status.
        body: Beginning of the body.
        key_name: Name of the variable that holds the key, empty if none is set.
        secret: The key, which must not come back out of the body.
    """
    if status in (401, 403):
        # The body is not quoted: providers like to repeat parts of the key in it.
        key = f"the key in environment variable {key_name!r}" if key_name else "a request without a key"
        error = f"the model endpoint refuses {key} (HTTP {status}); check 'api_key_env' and the key's rights"
        return ChatFailure(UNAUTHORIZED, error)
    quoted = quote(body, secret)
    error = f"the model endpoint answered HTTP {status}" + (f": {quoted}" if quoted else "")
    return ChatFailure(RunFailureCode.RUNNER_ERROR, error, retryable=status >= 500 or status in _RETRYABLE_STATUSES)


def quote(body: bytes, secret: str) -> str:
    """Quote what a provider says: its error message if there is one, else the text, on one line."""
    try:
        text = error_message(json.loads(body))
    except (ValueError, RecursionError):
        text = None
    if text is None:
        text = body.decode("utf-8", errors="replace")
    return quote_text(text, secret)


def quote_text(text: str, secret: str) -> str:
    """Cut a provider's text to 200 printable characters, without the key."""
    if secret:
        # Before it is cut: half a key at the end of the quotation is still half a key.
        text = text.replace(secret, "[key]")
    return _UNPRINTABLE.sub(" ", text).strip()[:MAX_QUOTED_CHARACTERS]


def error_message(body: object) -> str | None:
    """Find the message in one of the forms of error bodies, None if it is no error body.

    Forms: `{"error": {"message": ...}}`, `{"error": "..."}`, `{"object": "error", "message": ...}`.
    """
    if not isinstance(body, dict):
        return None
    error = body.get("error") or (body if body.get("object") == "error" else None)
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or "no message"
    return str(error) if error else None
