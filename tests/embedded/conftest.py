import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

Owner = tuple[asyncio.subprocess.Process, dict[str, Any]]


@pytest.fixture
async def start_owner(data_path: Path) -> AsyncIterator[Callable[[str], Awaitable[Owner]]]:
    """Starts another process that owns ``data_path`` and runs a server there."""
    started: list[asyncio.subprocess.Process] = []

    async def start(kind: str) -> Owner:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.embedded.owner", kind, str(data_path), stdout=asyncio.subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        return process, json.loads(await process.stdout.readline())

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.wait()
