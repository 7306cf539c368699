"""Fixtures of the tests of examples: the language model's server, and a host with the assistant."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples.assistant import IN_PROCESS, SEPARATE, Assistant, AssistantHost, assistant_host
from tests.examples.servers import ChatServer, read_ready_line, start_process
from tests.fixtures.databases import TestDatabases
from tests.fixtures.openai_stub import MODEL, OpenAIStub

if TYPE_CHECKING:
    from temporalio.client import Client


@pytest.fixture(scope="session")
def language_model() -> Iterator[ChatServer]:
    """The real server with the real model, in a process of its own; its end is checked too."""
    pytest.importorskip("ik_llama_cpp", reason="the model engine is not installed: make .venv/.demo")
    with start_process("--until-stdin-closes") as process:
        yield read_ready_line(process)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, b"")


@pytest.fixture(params=["stub", "language_model"])
def chat_server(request: pytest.FixtureRequest) -> ChatServer:
    if request.param == "language_model":
        return request.getfixturevalue("language_model")
    stub: OpenAIStub = request.getfixturevalue("openai_stub")
    return ChatServer(stub.base_url, MODEL)


@pytest.fixture(scope="session")
async def host_of_assistants(
    databases: TestDatabases,
    migrated_template: str,
    temporal_client: "Client",
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[AssistantHost]:
    """One host for all tests of the assistant; they keep apart by the names they choose."""
    name = await databases.create(migrated_template)
    folder: Path = tmp_path_factory.mktemp("assistants")
    async with (
        AsyncExitStack() as stack,
        assistant_host(stack, databases.url(name), temporal_client, folder) as host,
    ):
        yield host
    await databases.drop(name)


@pytest.fixture(params=[IN_PROCESS, SEPARATE], ids=["in-process", "separate"])
def assistant(request: pytest.FixtureRequest, host_of_assistants: AssistantHost, openai_stub: OpenAIStub) -> Assistant:
    """An assistant in each of its forms; a test says with `put` what it is."""
    return Assistant(host_of_assistants, request.param, openai_stub)
