"""The server around engines made up for a test: queue, disconnects, failures, refusals."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from examples.language_model import app, turns
from examples.language_model.engine import Sampling, Step, Turn
from tests.eventually import eventually
from tests.examples.servers import ChatServer, MadeUpEngine, serving, user


def say_yes(_stop: threading.Event) -> Iterator[Step]:
    yield Step("Yes")
    yield Step(".")
    yield Step("", "stop")


class Endless:
    """Says one word after the other until it is stopped."""

    def __init__(self) -> None:
        self.starts = 0
        self.stops = 0

    def __call__(self, stop: threading.Event) -> Iterator[Step]:
        self.starts += 1
        while not stop.wait(0.005):
            yield Step("on ")
        self.stops += 1


def fail_half_way(_stop: threading.Event) -> Iterator[Step]:
    yield Step("Yes")
    raise RuntimeError("the engine failed with -3 at position 7")


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_client_stops_its_answer(stream: bool) -> None:
    endless = Endless()
    async with serving(MadeUpEngine(endless)) as server:
        asking = asyncio.create_task(server.post(messages=user("Go"), stream=stream))
        await eventually(lambda: endless.starts == 1)
        asking.cancel()
        await eventually(lambda: endless.stops == 1)


@pytest.mark.parametrize("stream", [True, False])
async def test_client_that_leaves_the_queue_is_never_served(stream: bool) -> None:
    endless = Endless()
    engine = MadeUpEngine(endless)
    async with serving(engine) as server:
        first = asyncio.create_task(server.post(messages=user("first")))
        await eventually(lambda: endless.starts == 1)
        waiting = asyncio.create_task(server.post(messages=user("waits in vain"), stream=stream))
        await eventually(lambda: len(engine.conversations) == 2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        first.cancel()
        await eventually(lambda: endless.stops == 1)
        engine.play = say_yes
        assert await _text(server, "third") == "Yes."
    assert engine.prompts == [[5], [5]]


async def test_waiting_answers_are_made_in_order() -> None:
    gate = threading.Event()

    def wait_for_gate(stop: threading.Event) -> Iterator[Step]:
        gate.wait(10)
        yield from say_yes(stop)

    engine = MadeUpEngine(wait_for_gate)
    async with serving(engine) as server:
        asking = []
        for words in range(1, 6):
            asking.append(asyncio.create_task(_text(server, "word " * words)))
            await eventually(lambda words=words: len(engine.conversations) == words)
        gate.set()
        assert await asyncio.gather(*asking) == ["Yes."] * 5
    assert [len(prompt) for prompt in engine.prompts] == [1, 2, 3, 4, 5]


async def test_too_many_waiting_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_OPEN_ANSWERS", 1)
    endless = Endless()
    engine = MadeUpEngine(endless)
    async with serving(engine) as server:
        first = asyncio.create_task(server.post(messages=user("Go")))
        await eventually(lambda: endless.starts == 1)
        refused = await server.post(messages=user("Go"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        first.cancel()
        await eventually(lambda: endless.stops == 1)
        engine.play = say_yes
        assert await _text(server, "again") == "Yes."


async def test_engine_failure_breaks_the_stream_without_an_end_mark() -> None:
    async with serving(MadeUpEngine(fail_half_way)) as server:
        response = await server.post(messages=user("Go"), stream=True)
    *_, piece, report, rest = response.text.split("\n\n")
    assert json.loads(piece.removeprefix("data: "))["choices"][0]["delta"] == {"content": "Yes"}
    assert json.loads(report.removeprefix("data: "))["error"]["code"] == "engine_failed"
    assert rest == ""


async def test_engine_failure_is_a_server_error() -> None:
    async with serving(MadeUpEngine(fail_half_way)) as server:
        response = await server.post(messages=user("Go"))
    assert response.status_code == 500
    assert response.json()["error"]["type"] == "server_error"


async def test_shutdown_cuts_answers_off_without_an_end_mark() -> None:
    endless = Endless()
    async with serving(MadeUpEngine(endless)) as server:
        asking = asyncio.create_task(server.post(messages=user("Go"), stream=True))
        await eventually(lambda: endless.starts == 1)
    assert endless.stops == 1
    assert "[DONE]" not in (await asking).text


async def test_shutdown_refuses_whole_answers_that_are_not_whole() -> None:
    endless = Endless()
    async with serving(MadeUpEngine(endless)) as server:
        asking = asyncio.create_task(server.post(messages=user("Go")))
        await eventually(lambda: endless.starts == 1)
    response = await asking
    assert (response.status_code, response.json()["error"]["code"]) == (503, "stopped")


async def test_request_reaches_the_engine() -> None:
    engine = MadeUpEngine(say_yes)
    async with serving(engine) as server:
        await server.post(
            messages=[
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                {"role": "assistant", "content": "three"},
            ],
            max_completion_tokens=1_000,
            temperature=0,
            top_p=0.5,
            seed=3,
            user="someone",
            tools=[],
            stop=None,
        )
    assert engine.conversations == [[Turn("system", "Be brief."), Turn("user", "one\ntwo"), Turn("assistant", "three")]]
    # Five words of the prompt leave 45 of the 50 tokens.
    assert engine.samplings == [Sampling(max_tokens=45, temperature=0, top_p=0.5, seed=3)]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        pytest.param({"tools": [{"type": "function"}]}, "tools", id="tools"),
        pytest.param({"stop": ["x"]}, "stop", id="stop"),
        pytest.param({"response_format": {"type": "json_object"}}, "response_format", id="format"),
        pytest.param({"n": 2}, "n", id="choices"),
        pytest.param({"temperature": 3}, "temperature", id="temperature"),
        pytest.param({"top_p": 0}, "top_p", id="top-p"),
        pytest.param({"max_tokens": 0}, "max_tokens", id="max-tokens"),
        pytest.param({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role", id="role"),
        pytest.param({"messages": user("x" * 50_001)}, "messages.0.content.constrained-str", id="long-text"),
    ],
)
async def test_what_cannot_be_honoured_is_refused(changes: dict[str, Any], param: str) -> None:
    engine = MadeUpEngine(say_yes)
    async with serving(engine) as server:
        response = await server.post(**{"messages": user("Go"), **changes})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert not engine.prompts


async def test_body_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_BODY_BYTES", 100)
    async with serving(MadeUpEngine(say_yes)) as server:
        response = await server.post(messages=user("x" * 100))
    assert (response.status_code, response.json()["error"]["code"]) == (413, "request_too_large")


async def _text(server: ChatServer, question: str) -> str:
    response = await server.post(messages=user(question))
    return response.json()["choices"][0]["message"]["content"]
