"""Host calls of a program: each a task, answered by lines."""

import asyncio
from contextlib import aclosing
from typing import Final

import structlog

from runhost.protocol import AgentAPIError, AgentAPIException, ErrorCode, JsonObject, RunFailureCode
from runhost.protocol.host_api import HOST_METHODS
from runhost.sdk.connection import HostConnection
from runhost.sdk.wire import LineWriter, encode_line
from runners.errors import ProtocolBroken

MAX_RUNNING: Final = 64
"""Calls of one program that are under way at the same time; more take turns."""

MAX_WAITING: Final = 1_000
MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""Calls, and length of their lines, above which nothing is read from the program until some are answered."""

MAX_CALL_ID: Final = 2**53
"""Beyond it not all languages keep a number exact."""

NOT_THE_PROGRAMS: Final = frozenset({"run_id", "token", "run_token", "plugin_identity", "caller_plugin_identity"})
"""Parameters by which older runners say who they are. The host knows it from the connection (H-A3, PM-7)."""

logger = structlog.get_logger(__name__)


class HostCalls:
    """The calls of one program, made on its connection to the host.

    Who is calling is known by the connection alone: no field of a message says it.

    Args:
        host: host API of the attempt.
        lines: standard input of the program.
        run_id: for the log.
    """

    def __init__(self, host: HostConnection, lines: LineWriter, run_id: str) -> None:
        self._host = host
        self._lines = lines
        self._run_id = run_id
        self._turns = asyncio.Semaphore(MAX_RUNNING)
        self._open: dict[int, asyncio.Task[None]] = {}
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    def start(self, message: JsonObject, line: bytes) -> None:
        """Start the call of a `call` message.

        Raises:
            ProtocolBroken: it cannot be answered: no usable id, no method, or parameters that are no object.
        """
        call_id, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if type(call_id) is not int or not 0 <= call_id <= MAX_CALL_ID:
            raise ProtocolBroken("a call whose id is no whole number from 0 to 2^53", line)
        if call_id in self._open:
            raise ProtocolBroken(f"a call with id {call_id}, which is still open", line)
        if not isinstance(method, str) or not isinstance(params, dict):
            raise ProtocolBroken("a call without the name of a method, or whose params are no object", line)
        own = {name: value for name, value in params.items() if name not in NOT_THE_PROGRAMS}
        task = asyncio.create_task(self._play(call_id, method, own))
        self._open[call_id] = task
        self._tasks[task] = len(line)
        self._waiting_bytes += len(line)
        task.add_done_callback(self._forget)
        if len(self._tasks) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES:
            self._room.clear()

    async def room(self) -> None:
        """Wait until there is room for another call."""
        await self._room.wait()

    def abort(self, call_id: object) -> None:
        """Cancel a call that the program has given up; one that is answered by now needs nothing."""
        task = self._open.pop(call_id, None) if isinstance(call_id, int) else None
        if task is not None:
            task.cancel()

    def cancel(self) -> None:
        """Cancel what is under way and answer it with `cancelled`. Later calls are made: a runner may have to tidy."""
        error = AgentAPIError(
            code=RunFailureCode.CANCELLED.value, message="The run is being stopped, and this call with it."
        )
        for call_id, task in list(self._open.items()):
            del self._open[call_id]
            task.cancel()
            self._lines.send(_refusal(call_id, error))

    def close(self) -> None:
        """Cancel everything; nobody reads answers any more."""
        self._open.clear()
        for task in list(self._tasks):
            task.cancel()

    async def _play(self, call_id: int, method: str, params: JsonObject) -> None:
        async with self._turns:
            try:
                last_line = await self._make(call_id, method, params)
            except AgentAPIException as error:
                last_line = _refusal(call_id, error.error)
            except Exception as error:  # noqa: BLE001  whatever broke, the program waits for an answer
                # Its type only: the text may quote what was asked for (INV-9).
                logger.warning("runner.host_call_broke", run_id=self._run_id, error_type=type(error).__name__)
                message = "The host could not make this call; its log says why."
                last_line = _refusal(call_id, AgentAPIError(code=ErrorCode.RUNTIME_ERROR.value, message=message))
            if self._open.get(call_id) is asyncio.current_task():
                # The id is free again from here on: the program may use it as soon as it has read the answer.
                del self._open[call_id]
                self._lines.send(last_line)
                await self._lines.drained()

    async def _make(self, call_id: int, method: str, params: JsonObject) -> bytes:
        """Make a call; returns the line that ends it."""
        known = HOST_METHODS.get(method)
        if known is None or not known.is_stream:
            result = await self._host.call(method, params)
            return encode_line({"type": "answer", "id": call_id, "result": result})
        async with aclosing(self._host.stream(method, params)) as events:
            async for event in events:
                self._lines.send(encode_line({"type": "item", "id": call_id, "result": event}))
                await self._lines.drained()
        return encode_line({"type": "end", "id": call_id})

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._waiting_bytes -= self._tasks.pop(task)
        if len(self._tasks) < MAX_WAITING and self._waiting_bytes < MAX_WAITING_BYTES:
            self._room.set()


def _refusal(call_id: int, error: AgentAPIError) -> bytes:
    return encode_line({"type": "answer", "id": call_id, "error": error.model_dump(mode="json")})
