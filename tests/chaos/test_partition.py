"""A worker that Temporal has lost, and that does not know it (INV-5, P-29)."""

import asyncio
from contextlib import suppress
from typing import Any

from tests.eventually import eventually
from tests.fixtures.host import WorkingHost
from workflows.client import connect

# Three seconds: the cut worker goes on for as long.
SLOW: list[Any] = [*([{"delta": "tick "}, {"pause": 0.1}] * 30), {"message": "done"}, {"completed": "stop"}]


class Wire:
    """A TCP connection to a server that can be cut for good."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.partition(":")
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def lay(self) -> str:
        """Listen, and return the address to use instead of the server's."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def cut(self) -> None:
        """End all connections and take no new ones."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._host, int(self._port))
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass_on(source, sink))
            self._tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()
        finally:
            sink.close()


async def test_inv_5_late_writes_of_a_cut_off_worker_are_refused(
    working_host: WorkingHost, temporal_address: str
) -> None:
    wire = Wire(temporal_address)
    cut_off = WorkingHost(
        working_host.engine,
        working_host.database_url,
        client=await connect(await wire.lay()),
        task_queue=working_host.task_queue,
    )
    run = await working_host.new_run(SLOW, heartbeat_timeout_seconds=1)

    async def has_attempt(attempt: int) -> bool:
        return any(
            row.attempt == attempt and row.type == "message.delta" for row in await working_host.ledger(run.run_id)
        )

    async with cut_off.worker():
        handle = await working_host.start(run)
        await eventually(lambda: has_attempt(1))
        async with working_host.worker():
            await wire.cut()
            await eventually(lambda: has_attempt(2), within_seconds=40)
            await handle.result()
    rows = await working_host.ledger(run.run_id)
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    second = next(row.sequence for row in rows if row.type == "host.attempt_started" and row.attempt == 2)
    assert {row.attempt for row in rows if row.sequence > second} == {2}
    assert any(row.attempt == 1 and row.type == "message.delta" for row in rows)
    assert (await working_host.run(run.run_id)).status == "completed"
    assert [item.content for item in await working_host.transcript()] == ["hello", "done"]
