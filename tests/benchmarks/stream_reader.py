"""Readers of live streams, in a process of their own: ``python -m tests.benchmarks.stream_reader OUTPUT``.

Takes one JSON object on standard input: ``port``, ``key``, ``run_ids``, ``readers`` of each run, ``last``, the
sequence after which they are done. Notes ``reading`` when every reader has seen its run's first row, and writes
``OUTPUT`` in the end: for each reader ``[run_id, [[sequence, received at], ...]]``, in monotonic seconds.
"""

import asyncio
import bisect
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.notes import note

FRAME = re.compile(rb"id: (\d+)\nevent: [^\n]*\ndata: [^\n]*\n\n")
GIVES_UP_AFTER_SECONDS = 60.0
# A frame that ends in this chunk may have begun in the last one.
TAIL_BYTES = 64


class Reader(asyncio.Protocol):
    """Asks for a run's stream and keeps what arrives, and when; it is looked into afterwards."""

    def __init__(self, request: bytes, run_id: str, last: int) -> None:
        self.run_id = run_id
        self.has_begun = asyncio.Event()
        self.is_done = asyncio.Event()
        self._request = request
        self._end = b"id: %d\n" % last
        self._chunks: list[bytes] = []
        self._times: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Keep."""
        self._times.append(time.monotonic())
        seam = self._chunks[-1][-TAIL_BYTES:] if self._chunks else b""
        self._chunks.append(data)
        if b"id: 1\n" in seam + data[:4096]:
            self.has_begun.set()
        if self._end in seam + data:
            self.is_done.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting; what is missing will be seen."""
        self.has_begun.set()
        self.is_done.set()

    def received(self) -> list[tuple[int, float]]:
        """Return each row's sequence and when its last byte was there."""
        ends: list[int] = []
        size = 0
        for chunk in self._chunks:
            size += len(chunk)
            ends.append(size)
        stream = b"".join(self._chunks)
        return [
            (int(frame.group(1)), self._times[bisect.bisect_left(ends, frame.end())])
            for frame in FRAME.finditer(stream)
        ]


async def read(order: dict[str, Any]) -> list[tuple[str, list[tuple[int, float]]]]:
    """Read until all rows have arrived everywhere."""
    readers: list[Reader] = []
    for run_id in order["run_ids"]:
        request = (
            f"GET /v1/runs/{run_id}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {order['key']}\r\n\r\n"
        ).encode()
        for _ in range(order["readers"]):
            reader = Reader(request, run_id, order["last"])
            await asyncio.get_running_loop().create_connection(lambda reader=reader: reader, "127.0.0.1", order["port"])
            readers.append(reader)
    for reader in readers:
        await reader.has_begun.wait()
    note("reading", order["run_ids"][0])
    async with asyncio.timeout(GIVES_UP_AFTER_SECONDS):
        for reader in readers:
            await reader.is_done.wait()
    return [(reader.run_id, reader.received()) for reader in readers]


def main(output: str) -> None:
    """Read what standard input asks for."""
    Path(output).write_text(json.dumps(asyncio.run(read(json.load(sys.stdin)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
