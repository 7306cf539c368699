"""Commands, run as a person runs them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.client.stub import KEY, HostStub
from tests.fixtures.openai_stub import OpenAIStub

# Of the machine that runs the tests, and no business of theirs.
FOREIGN_SETTINGS = ("RUNHOST_API_URL", "RUNHOST_KEY", "RUNHOST_DATABASE_URL")


@dataclass(frozen=True)
class Outcome:
    """What a command left."""

    code: int
    stdout: str
    stderr: str

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Standard output as JSON, one object per line."""
        return [json.loads(line) for line in self.stdout.splitlines()]


Cli = Callable[..., Awaitable[Outcome]]


async def run_cli(*arguments: str, env: Mapping[str, str | None], stdin: str | None = None) -> Outcome:
    """Run a command in this process, in a thread: it has an event loop of its own."""
    from runhost.cli import main

    clean = dict.fromkeys(FOREIGN_SETTINGS) | {"COLUMNS": "200", "NO_COLOR": "1"}
    runner = CliRunner(env=clean | dict(env))
    result = await asyncio.to_thread(runner.invoke, main, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def host_stub(openai_stub: OpenAIStub) -> HostStub:
    return HostStub(openai_stub)


@pytest.fixture
def cli(host_stub: HostStub) -> Cli:
    """Run a command against a host that answers as it is told."""
    env = {"RUNHOST_API_URL": host_stub.url, "RUNHOST_KEY": KEY}

    async def run(*arguments: str, stdin: str | None = None, **more: str | None) -> Outcome:
        return await run_cli(*arguments, env=env | more, stdin=stdin)

    return run
