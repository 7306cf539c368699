"""The real model behind its server; skipped only where its engine is not installed."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runners.official.openai_chat.runner import OpenAIChatRunner
from tests.examples.servers import ROOT, ChatServer, read_ready_line, start_process, user
from tests.examples.test_chat_contract import WITH_USAGE, events_of
from tests.runners.chat_runs import chat_context, text_of


async def test_runner_streams_a_real_answer(language_model: ChatServer) -> None:
    config = {"base_url": language_model.base_url, "model": language_model.model, "timeout": 50}
    context = chat_context(config)
    *deltas, message, end = [result async for result in OpenAIChatRunner().run(context)]
    assert len(deltas) > 5
    assert "".join(str(text_of(delta)) for delta in deltas) == text_of(message)
    assert end.data["finish_reason"] in ("stop", "length")
    assert end.usage is not None
    assert end.usage.completion_tokens is not None
    assert end.usage.completion_tokens >= len(deltas)


async def test_healthz_answers(language_model: ChatServer) -> None:
    async with language_model.client() as client:
        response = await client.get(language_model.base_url.removesuffix("/v1") + "/healthz")
    assert response.json() == {"status": "ok"}


@pytest.mark.parametrize("question", ["What is the sun?", "Write 你好 and 😀 three times."], ids=["ascii", "unicode"])
async def test_no_token_is_lost_between_stream_and_whole(language_model: ChatServer, question: str) -> None:
    options = {"messages": user(question), "temperature": 0.9, "seed": 7, "max_tokens": 40}
    *chunks, counted = events_of(await language_model.post(**options, **WITH_USAGE))
    whole = (await language_model.post(**options)).json()
    streamed = "".join(event["choices"][0]["delta"].get("content", "") for event in chunks)
    assert streamed == whole["choices"][0]["message"]["content"]
    assert counted["usage"] == whole["usage"]


async def test_answers_made_at_the_same_time_are_those_made_alone(language_model: ChatServer) -> None:
    questions = [user(f"Name {number} animals.") for number in range(2, 5)]

    async def ask(question: list[dict[str, str]]) -> str:
        response = await language_model.post(messages=question, temperature=0, max_tokens=12)
        return response.json()["choices"][0]["message"]["content"]

    alone = [await ask(question) for question in questions]
    assert await asyncio.gather(*map(ask, questions)) == alone


async def test_client_that_leaves_makes_room_for_the_next(language_model: ChatServer) -> None:
    body = {"model": language_model.model, "messages": user("Count to a thousand."), "max_tokens": 1_900}
    async with language_model.client() as client:
        async with client.stream("POST", "/chat/completions", json={**body, "stream": True}) as response:
            await anext(response.aiter_lines())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.post("/chat/completions", json=body), 1)
    started = time.monotonic()
    await language_model.post(messages=user("Hi"), max_tokens=1)
    # Two such answers take more than half a minute.
    assert time.monotonic() - started < 10


async def test_marks_in_a_message_stay_text(language_model: ChatServer) -> None:
    async def prompt_tokens(text: str) -> int:
        response = await language_model.post(messages=user(text), max_tokens=1)
        return response.json()["usage"]["prompt_tokens"]

    # As a mark it would be a single token.
    assert await prompt_tokens("a<|im_end|>") > await prompt_tokens("a") + 3


async def test_system_message_replaces_that_of_the_model(language_model: ChatServer) -> None:
    own = (await language_model.post(messages=user("Hi"), max_tokens=1)).json()
    system = {"role": "system", "content": "x"}
    replaced = (await language_model.post(messages=[system, *user("Hi")], max_tokens=1)).json()
    assert replaced["usage"]["prompt_tokens"] < own["usage"]["prompt_tokens"]


@pytest.mark.usefixtures("language_model")
def test_signal_stops_it_while_it_answers() -> None:
    with start_process() as process:
        server = read_ready_line(process)
        with socket.create_connection(("127.0.0.1", int(server.base_url.split(":")[2].removesuffix("/v1")))) as client:
            body = b'{"model":"%s","stream":true,"max_tokens":1900,"messages":[{"role":"user","content":"Count."}]}'
            body %= server.model.encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            client.sendall(head % len(body) + body)
            assert client.recv(1024).startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGTERM)
            received = b"".join(iter(lambda: client.recv(65_536), b""))
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == b""
    assert b"[DONE]" not in received


@pytest.mark.usefixtures("language_model")
def test_busy_port_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with start_process("--port", port) as process:
            output, errors = process.communicate(timeout=50)
    assert (process.returncode, output) == (1, b"")
    assert f"127.0.0.1:{port}" in errors.decode()


@pytest.mark.parametrize(
    ("engine", "code", "words"),
    [
        pytest.param("import os; os.kill(os.getpid(), 4)", 3, "processor: killed by SIGILL", id="crash"),
        pytest.param("raise OSError('no AVX2 here')", 3, "processor: no AVX2 here", id="refusal"),
        pytest.param("raise ModuleNotFoundError('no wheel')", 4, "make .venv/.demo", id="not-installed"),
        pytest.param("raise ValueError('surprise')", 3, "processor: ValueError: surprise", id="unexpected"),
    ],
)
def test_engine_that_does_not_load_is_told_by_exit_code(tmp_path: Path, engine: str, code: int, words: str) -> None:
    (tmp_path / "numpy.py").touch()
    (tmp_path / "ik_llama_cpp.py").write_text(engine)
    with start_process(python_path=tmp_path) as process:
        output, errors = process.communicate(timeout=50)
    assert (process.returncode, output) == (code, b"")
    assert words in errors.decode()
    assert len(errors.decode().splitlines()) == 1


@pytest.mark.usefixtures("language_model")
def test_check_finds_wrong_numbers(tmp_path: Path) -> None:
    script = (
        "import sys; from examples.language_model import check, smollm2;"
        "smollm2.SmolLM2.generate = lambda *_: iter([smollm2.Step('nonsense')]); sys.exit(check.main())"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert outcome.returncode == 3
    assert "wrong numbers" in outcome.stderr
