"""Chat servers for the tests of the language model: as a process, and around an engine made up for a test."""

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

from examples.language_model.engine import Engine, Sampling, Step, Turn
from examples.language_model.server import Server
from examples.language_model.turns import Turns
from tests.eventually import eventually

ROOT = Path(__file__).parents[2]
START_SECONDS = 45


@dataclass(frozen=True, slots=True)
class ChatServer:
    """Where a server is, and what its model is called."""

    base_url: str
    model: str

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.base_url, timeout=50, trust_env=False)

    async def post(self, **body: Any) -> httpx.Response:
        async with self.client() as client:
            return await client.post("/chat/completions", json={"model": self.model, **body})

    async def get(self, path: str) -> httpx.Response:
        async with self.client() as client:
            return await client.get(path)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def start_process(*options: str, python_path: Path | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "examples.language_model", "--port", "0", *options]
    env = os.environ | ({"PYTHONPATH": str(python_path)} if python_path else {})
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=pipe)


def read_ready_line(process: subprocess.Popen[bytes]) -> ChatServer:
    """Wait until the server takes requests."""
    stdout = _opened(process.stdout)
    readable, _, _ = select.select([stdout], [], [], START_SECONDS)
    line = stdout.readline() if readable else b""
    if not line:
        process.kill()
        raise AssertionError(f"the server did not start: {_opened(process.stderr).read().decode()}")
    ready = json.loads(line)
    assert ready.keys() == {"base_url", "model", "pid"}
    assert ready["pid"] == process.pid
    return ChatServer(ready["base_url"], ready["model"])


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


class MadeUpEngine:
    """Says what `play` yields; one token per word in prompts."""

    name = "made-up"
    context_tokens = 50

    def __init__(self, play: Callable[[threading.Event], Iterator[Step]]) -> None:
        self.play = play
        self.prompts: list[list[int]] = []
        self.conversations: list[list[Turn]] = []
        self.samplings: list[Sampling] = []

    def tokens_of(self, conversation: Sequence[Turn]) -> list[int]:
        self.conversations.append(list(conversation))
        return [len(word) for turn in conversation for word in turn.content.split()]

    def generate(self, prompt: list[int], sampling: Sampling, stop: threading.Event) -> Iterator[Step]:
        self.prompts.append(prompt)
        self.samplings.append(sampling)
        yield from self.play(stop)


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[ChatServer]:
    """Serve an engine over real HTTP on this loop."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(Turns(engine))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await eventually(lambda: server.started)
        try:
            yield ChatServer(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", engine.name)
        finally:
            server.should_exit = True
            await task
