"""The model endpoint of the kit, asked as a runner asks one."""

import asyncio
from typing import Any

import httpx

from runners.conformance import MODEL_NAME, model_endpoint
from runners.conformance.scenario import CANCELLED, LONG_ANSWER, PLAIN, REFUSALS, WITHOUT_USAGE

CHAT: dict[str, Any] = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "hello"}]}


async def post(base_url: str, body: object = CHAT, path: str = "/chat/completions") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"{base_url}{path}", json=body)


async def test_whole_answer_repeats_the_question() -> None:
    async with model_endpoint() as endpoint:
        answer = (await post(endpoint.base_url)).json()
    assert answer["choices"][0]["message"]["content"] == "You said: hello"
    assert answer["usage"]["total_tokens"] == 18
    assert endpoint.calls == 1


async def test_usage_is_left_out_where_the_scenario_says_so() -> None:
    """D-32."""
    async with model_endpoint() as endpoint:
        endpoint.play(WITHOUT_USAGE, lambda: None)
        assert "usage" not in (await post(endpoint.base_url)).json()


async def test_stream_ends_with_usage_and_the_mark() -> None:
    async with model_endpoint() as endpoint:
        endpoint.play(LONG_ANSWER, lambda: None)
        answer = await post(endpoint.base_url, {**CHAT, "stream": True})
    lines = [line for line in answer.text.split("\n\n") if line]
    assert len(answer.text) > 5_000_000
    assert lines[-1] == "data: [DONE]"
    assert '"usage"' in lines[-2]


async def test_refusals_have_the_status_of_their_code() -> None:
    async with model_endpoint() as endpoint:
        statuses = list[int]()
        for scenario in REFUSALS:
            endpoint.play(scenario, lambda: None)
            statuses.append((await post(endpoint.base_url)).status_code)
    assert statuses == [403, 504, 429, 500]


async def test_other_paths_are_not_found() -> None:
    async with model_endpoint() as endpoint:
        assert (await post(endpoint.base_url, path="/embeddings")).status_code == 404


async def test_hanging_request_ends_with_the_endpoint() -> None:
    async with model_endpoint() as endpoint:
        called = asyncio.Event()
        endpoint.play(CANCELLED, called.set)
        asking = asyncio.create_task(post(endpoint.base_url))
        await called.wait()
    (error,) = await asyncio.gather(asking, return_exceptions=True)
    assert isinstance(error, httpx.HTTPError)


async def test_what_is_no_request_is_dropped_and_the_next_one_answered() -> None:
    async with model_endpoint() as endpoint:
        endpoint.play(PLAIN, lambda: None)
        url = httpx.URL(endpoint.base_url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"hello\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        assert (await post(endpoint.base_url)).status_code == 200
