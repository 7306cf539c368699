"""One stack for all tests of this folder; each leaves it whole."""

import os
import shutil
from collections.abc import AsyncIterator

import pytest

from runhost.embedded import DataDirectory
from tests.chaos.stack import Stack
from tests.examples.assistant import FOLDER, copy_as_program
from tests.fixtures.session import make_folder


@pytest.fixture(scope="package")
async def stack() -> AsyncIterator[Stack]:
    """A running host of real processes."""
    path = make_folder("runhost-chaos-")
    with DataDirectory(path) as directory:
        program = copy_as_program(path / "assistant-apart")
        stack = Stack(directory, settings={"RUNHOST_RUNNER_PATHS": os.pathsep.join(map(str, (FOLDER, program)))})
        try:
            await stack.start()
            yield stack
        finally:
            await stack.stop()
    shutil.rmtree(path)
