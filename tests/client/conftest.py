from collections.abc import AsyncIterator

import pytest

from runhost.client import RunhostClient
from tests.client.stub import FAST, KEY, HostStub
from tests.fixtures.openai_stub import OpenAIStub


@pytest.fixture
def host_stub(openai_stub: OpenAIStub) -> HostStub:
    return HostStub(openai_stub)


@pytest.fixture
async def client(host_stub: HostStub) -> AsyncIterator[RunhostClient]:
    async with RunhostClient(host_stub.url, KEY, retry=FAST) as client:
        yield client
