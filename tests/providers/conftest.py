"""Providers against real servers of the tests."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from providers.mcp import McpToolProvider, StdioPolicy
from providers.openai import OpenAIProvider
from providers.tools import ToolServerAddress
from tests.eventually import eventually
from tests.providers import tool_server

PROGRAM = (sys.executable, tool_server.__file__)


@pytest.fixture
async def models() -> AsyncIterator[OpenAIProvider]:
    async with OpenAIProvider() as provider:
        yield provider


@pytest.fixture
async def tools() -> AsyncIterator[McpToolProvider]:
    """A provider that may start the server of the tests, and nothing else."""
    async with McpToolProvider(StdioPolicy((PROGRAM,))) as provider:
        yield provider


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., ToolServerAddress]:
    """Factory of addresses of servers on standard streams, which leave their notes in ``tmp_path``."""

    def address(*options: str, **fields: Any) -> ToolServerAddress:
        return ToolServerAddress("stdio-server", "stdio", (*PROGRAM, str(tmp_path), *options), **fields)

    return address


class HttpServer:
    """A server over HTTP, as a process of its own that a test may kill."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2].partition("/")[0]

    def address(self, **fields: Any) -> ToolServerAddress:
        return ToolServerAddress("http-server", "streamable_http", url=self.url, **fields)

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


NewServer = Callable[..., Awaitable[HttpServer]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[NewServer]:
    """Start servers over HTTP, which leave their notes in ``tmp_path``."""
    async with servers_in(tmp_path) as start:
        yield start


@asynccontextmanager
async def servers_in(folder: Path) -> AsyncIterator[NewServer]:
    """Start servers over HTTP inside a block."""
    started: list[HttpServer] = []

    async def start(*options: str) -> HttpServer:
        noted = folder / "url"
        noted.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(*PROGRAM, str(folder), "--http", *options)
        server = HttpServer(process, "")
        started.append(server)
        await eventually(lambda: noted.exists() and noted.read_text(), within_seconds=30)
        server.url = noted.read_text()
        return server

    yield start
    for server in started:
        await server.kill()
