"""Following a run over as many connections as it takes."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import httpx
from pydantic import ValidationError

from runhost.client.errors import ApiProblem, ClientError, UnexpectedAnswer
from runhost.client.exchange import Exchange, is_retryable, segment
from runhost.protocol import AgentRunEvent, HostEventType, describe_validation
from runhost.sse import EventStreamParser, EventTooLong, StreamEvent

_ALL_SEEN: Final = 204


class RunFollower:
    """Reads one run's ledger, once and in order, across lost connections.

    Args:
        exchange: Talks to the host.
        run_id: The run.
        after: Sequence of the last row that the caller has; 0 for none.
    """

    def __init__(self, exchange: Exchange, run_id: str, after: int) -> None:
        self._exchange = exchange
        self._run_id = run_id
        self._position = after
        self._has_ended = False
        # Connections in a row that brought no row.
        self._fruitless = 0
        self._heard_at = 0.0

    async def events(self) -> AsyncGenerator[AgentRunEvent]:
        """Yield rows until the run has ended.

        Raises:
            ApiProblem: The host refused.
            HostUnreachable: It was gone for longer than the retry policy waits.
            UnexpectedAnswer: What came is no ledger.
        """
        self._heard_at = time.monotonic()
        while not self._has_ended:
            lost: ClientError | None = None
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
                        yield event
            except httpx.TransportError as error:
                lost = self._exchange.unreachable(error)
            except ClientError as error:
                if not is_retryable(error):
                    raise
                lost = error
            # Without an error the host has cut us off: it shuts down, or we were too slow. The run goes on.
            if not self._has_ended:
                await self._wait(lost)

    async def _connection(self) -> AsyncGenerator[AgentRunEvent]:
        """Yield the rows that one connection brings."""
        self._fruitless += 1
        headers = {"Last-Event-ID": str(self._position)} if self._position else {}
        path = f"/v1/runs/{segment(self._run_id)}/stream"
        async with self._exchange.stream(path, headers) as response:
            if response.status_code == _ALL_SEEN:
                self._has_ended = True
                return
            parser = EventStreamParser()
            self._heard_at = time.monotonic()
            async with aclosing(self._exchange.wire.pieces(response)) as pieces:
                async for piece in pieces:
                    # A run that is silent is heard of too, by the host's comments.
                    self._heard_at = time.monotonic()
                    for event in self._take(parser, piece, response.status_code):
                        yield event

    def _take(self, parser: EventStreamParser, piece: bytes, status: int) -> list[AgentRunEvent]:
        """Return the new rows that a piece of the stream completes."""
        try:
            found = [_read(event) for event in parser.feed(piece)]
        except (EventTooLong, ValueError, RecursionError) as error:
            reason = describe_validation(error) if isinstance(error, ValidationError) else str(error)
            raise UnexpectedAnswer(status, f"The stream of run {self._run_id!r} holds no ledger: {reason}") from None
        fresh = [event for event in found if event.sequence > self._position]
        if fresh:
            self._fruitless = 0
            self._position = fresh[-1].sequence
            # Rows of a retry may follow this one, so it is the host that ends the stream.
            self._has_ended = fresh[-1].type == HostEventType.RUN_ENDED
        return fresh

    async def _wait(self, lost: ClientError | None) -> None:
        """Pause before the next connection; not where the last one brought something.

        Raises:
            ClientError: The patience is at its end; this is ``lost``.
        """
        retry = self._exchange.retry
        if lost is not None and time.monotonic() - self._heard_at > retry.follow_for_seconds:
            raise lost
        if self._fruitless:
            wanted = lost.retry_after_seconds if isinstance(lost, ApiProblem) else None
            delay = retry.delay(self._fruitless, wanted)
            await self._exchange.wire.sleep(retry.max_delay_seconds if delay is None else delay)


def _read(event: StreamEvent) -> AgentRunEvent:
    return AgentRunEvent.model_validate(json.loads(event.data))
