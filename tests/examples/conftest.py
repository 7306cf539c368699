"""Fixtures of the language model's tests."""

from collections.abc import Iterator

import pytest

from tests.examples.servers import ChatServer, read_ready_line, start_process
from tests.fixtures.openai_stub import MODEL, OpenAIStub


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
