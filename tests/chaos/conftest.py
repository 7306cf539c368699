"""One stack for all tests of this folder; each leaves it whole."""

import shutil
from collections.abc import AsyncIterator

import pytest

from runhost.embedded import DataDirectory
from tests.chaos.stack import Stack
from tests.fixtures.session import make_folder


@pytest.fixture(scope="package")
async def stack() -> AsyncIterator[Stack]:
    """A running host of real processes."""
    path = make_folder("runhost-chaos-")
    with DataDirectory(path) as directory:
        stack = Stack(directory)
        try:
            await stack.start()
            yield stack
        finally:
            await stack.stop()
    shutil.rmtree(path)
