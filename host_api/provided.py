"""How the failure of a model or a tool becomes that of the call (PROTOCOL 10)."""

from collections.abc import Iterator
from contextlib import contextmanager

from host_api.errors import HostCallError, invalid_argument, too_large
from providers.errors import AnswerTooLarge, ArgumentRefused, ProviderError
from runhost.protocol import ErrorCode


@contextmanager
def provided() -> Iterator[None]:
    """Answer what a provider raises inside the block.

    Raises:
        HostCallError: `invalid_argument` for what cannot be sent, `payload_too_large` for an answer over its limit,
            else `runtime_error`, retryable where the provider may succeed later.
    """
    try:
        yield
    except ArgumentRefused as error:
        raise invalid_argument(error.field, error.reason) from None
    except AnswerTooLarge as error:
        raise too_large(error.message) from None
    except ProviderError as error:
        raise HostCallError(
            ErrorCode.RUNTIME_ERROR,
            error.message,
            retryable=error.retryable,
            retry_after_seconds=error.retry_after_seconds,
        ) from None
