"""A host that answers as it is told, over real HTTP."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from runhost.client import RetryPolicy
from tests.fixtures.openai_stub import OpenAIStub, Reply, StubRequest

RUN_ID = "01980000-0000-7000-8000-000000000001"
TIME = "2026-05-01T12:00:00Z"
KEY = "rh_test"
FAST = RetryPolicy(first_delay_seconds=0.001, max_delay_seconds=1.0, follow_for_seconds=0.5)

Step = Callable[[StubRequest, Reply], Awaitable[None]]


class HostStub:
    """Plays one step per request, the last one for all that follow; keeps what it was asked."""

    def __init__(self, server: OpenAIStub) -> None:
        self._server = server
        self._steps: list[Step] = []
        server.behave = self._play

    @property
    def url(self) -> str:
        return self._server.root

    @property
    def requests(self) -> list[StubRequest]:
        return self._server.requests

    def play(self, *steps: Step) -> None:
        self._steps = list(steps)

    async def _play(self, request: StubRequest, reply: Reply) -> None:
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        await step(request, reply)


def answer(status: int, body: object, **headers: str) -> Step:
    async def step(_request: StubRequest, reply: Reply) -> None:
        await reply.send_json(status, body, {name.replace("_", "-"): value for name, value in headers.items()})

    return step


def problem(status: int, code: str, *, retryable: bool = False, **more: Any) -> Step:
    headers = {name: more.pop(name) for name in ("Retry_After",) if name in more}
    document = {"type": f"urn:runhost:problem:{code}", "title": code, "status": status, "code": code}
    return answer(status, {**document, "retryable": retryable, "detail": f"because of {code}", **more}, **headers)


async def cut(_request: StubRequest, reply: Reply) -> None:
    reply.reset()


async def send_rows(reply: Reply, *sequences: int, end: bool = False) -> None:
    """Send rows into an open stream; ``end`` makes the last one the run's end."""
    for sequence in sequences:
        type_ = "host.run_ended" if end and sequence == sequences[-1] else "message.delta"
        row = json.dumps(event(sequence, type_))
        await reply.send_raw(f"id: {sequence}\nevent: {type_}\ndata: {row}\n\n".encode())


def frames(*sequences: int, end: bool = False, cut_off: bool = False) -> Step:
    """Answer with a stream of rows; ``cut_off`` breaks the connection after them."""

    async def step(_request: StubRequest, reply: Reply) -> None:
        await reply.start_stream()
        await reply.send_raw(b"retry: 2000\n\n")
        await send_rows(reply, *sequences, end=end)
        if cut_off:
            reply.reset()
        else:
            await reply.end_chunks()

    return step


def event(sequence: int, type_: str = "message.delta", **more: Any) -> dict[str, Any]:
    return {"run_id": RUN_ID, "sequence": sequence, "type": type_, "data": {}, "created_at": TIME, **more}


def run(**more: Any) -> dict[str, Any]:
    return {"run_id": RUN_ID, "runner_id": "plugin:a/b/c", "status": "running", "created_at": TIME, **more}
