"""One call of the host API: parameters checked, time bounded, answer read (PROTOCOL 9, P-T1)."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeVar

from pydantic import ValidationError

from runhost.protocol import AgentRunContext, JsonObject, StrictModel, describe_validation
from runhost.protocol.host_api import HOST_METHODS
from runhost.sdk.api.encoding import encode
from runhost.sdk.api.errors import (
    deadline_exceeded,
    invalid_argument,
    malformed_answer,
    too_large,
    unstructured_error,
)
from runhost.sdk.api.grants import Grants
from runhost.sdk.connection import HostConnection

_MAX_SHOWN_ERROR: Final = 2_000

Answer = TypeVar("Answer", bound=StrictModel)


class HostCalls:
    """Makes the calls of one run.

    Args:
        connection: Carries them.
        deadline_at: Epoch seconds at which the run is over; None for never.
    """

    def __init__(self, connection: HostConnection, deadline_at: float | None) -> None:
        self._connection = connection
        self._deadline_at = deadline_at

    async def call(self, method: str, kind: type[Answer], **fields: object) -> Answer:
        """Call a method that answers once.

        Args:
            method: A name in `HOST_METHODS`.
            kind: Its return model.
            fields: Its parameters.

        Raises:
            AgentAPIException: It is refused here or by the host, takes too long, or its answer makes no sense.
        """
        params = _params(method, fields)
        async with self._in_time(method):
            answer = await self._connection.call(method, params)
        return _read(method, kind, answer)

    async def stream(self, method: str, kind: type[Answer], **fields: object) -> AsyncGenerator[Answer]:
        """Call a method that streams, and yield its events.

        Raises:
            AgentAPIException: As in `call`, before the first event or between two.
        """
        params = _params(method, fields)
        is_sent = False
        async with aclosing(self._connection.stream(method, params)) as events:
            while True:
                # Around each step and not around the loop: what the reader does between two is not the call.
                async with self._in_time(method, is_sent=is_sent):
                    event = await anext(events, None)
                is_sent = True
                if event is None:
                    return
                yield _read(method, kind, event)

    @asynccontextmanager
    async def _in_time(self, method: str, *, is_sent: bool = False) -> AsyncGenerator[None]:
        remaining = None if self._deadline_at is None else self._deadline_at - time.time()
        if remaining is not None and remaining <= 0:
            raise deadline_exceeded(method, is_sent=is_sent)
        limit = asyncio.timeout(remaining)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise deadline_exceeded(method, is_sent=True) from None


class ProxyPart:
    """What the parts of the proxy share."""

    def __init__(self, ctx: AgentRunContext, connection: HostConnection) -> None:
        self._grants = Grants(ctx)
        self._calls = HostCalls(connection, ctx.runtime.deadline_at)


def _params(method: str, fields: dict[str, object]) -> JsonObject:
    wire = HOST_METHODS[method]
    try:
        # Only what was given: what a message leaves out, the host fills in.
        params: JsonObject = wire.params.model_validate(fields).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise invalid_argument(f"{method}: {describe_validation(error)}.") from None
    size = len(encode(params))
    if size > wire.max_request_bytes:
        raise too_large(
            f"{method}: the parameters are {size} bytes of JSON; the host takes at most {wire.max_request_bytes}."
        )
    return params


def _read(method: str, kind: type[Answer], answer: object) -> Answer:
    # A transport that knows no structured errors hands their text on (PROTOCOL 10).
    if isinstance(answer, str):
        raise unstructured_error(method, answer[:_MAX_SHOWN_ERROR])
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        raise malformed_answer(method, describe_validation(error)) from None
