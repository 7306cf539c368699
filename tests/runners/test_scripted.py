"""The scripted runner plays what its config says, and refuses what it cannot play."""

import asyncio
import json
from pathlib import Path

import pytest

from runhost.protocol import (
    MAX_RESULT_BYTES,
    AgentRunResult,
    InvalidPayload,
    JsonObject,
    JsonValue,
    MalformedResult,
    RunFailureCode,
    parse_result,
    validate_payload,
)
from runners.discovery import discover
from runners.errors import RunnerCrashed
from runners.in_process import InProcessLimits, InProcessSession, InProcessTransport
from runners.official.scripted.script import MAX_STEPS
from runners.registry import RunnerRegistry
from runners.transport import StopReason
from tests.runners.contexts import read_until_error, run_context
from tests.runners.hosts import NO_HOST

SCRIPTED = "plugin:runhost/scripted/default"
ROOT = Path(__file__).parents[2] / "runners" / "official" / "scripted"


@pytest.fixture(scope="module")
def registry() -> RunnerRegistry:
    return RunnerRegistry(lambda: discover([ROOT], packages=[]))


def start(registry: RunnerRegistry, config: JsonObject, text: str | None = "hello") -> InProcessSession:
    limits = InProcessLimits(blocked_after_seconds=0.3)
    return InProcessTransport(registry, limits).open(registry.get(SCRIPTED), run_context(text, config), NO_HOST)


async def play(registry: RunnerRegistry, *steps: JsonValue, text: str | None = "hello") -> list[object]:
    session = start(registry, {"script": list(steps)}, text)
    results = [result async for result in session.results()]
    assert await session.stop(StopReason.ENDED, 1) is None
    return results


def shown(result: object) -> tuple[str, JsonObject]:
    """Type and data of a result that fits the protocol."""
    assert isinstance(result, AgentRunResult)
    assert parse_result(result).warnings == ()
    validate_payload(result)
    return result.type, result.data


def delta_of(text: str) -> tuple[str, JsonObject]:
    chunk: JsonObject = {"role": "assistant", "content": text, "mode": "append", "message_index": 0}
    return "message.delta", {"chunk": chunk}


def message_of(text: str) -> tuple[str, JsonObject]:
    return "message.completed", {"message": {"role": "assistant", "content": text}}


STOP: tuple[str, JsonObject] = ("run.completed", {"finish_reason": "stop"})


@pytest.mark.parametrize("config", [{}, {"script": None}, {"script": ""}], ids=["missing", "null", "empty"])
async def test_without_a_script_the_input_is_echoed(registry: RunnerRegistry, config: JsonObject) -> None:
    session = start(registry, config, "one two  three")
    results = [shown(result) async for result in session.results()]
    await session.stop(StopReason.ENDED, 1)
    assert results == [
        delta_of("one "),
        delta_of("two  "),
        delta_of("three"),
        message_of("one two  three"),
        STOP,
    ]


async def test_long_words_are_echoed_in_pieces(registry: RunnerRegistry) -> None:
    text = "今天天气很好我们去公园散步吧"
    *deltas, message = [shown(result) for result in await play(registry, {"echo": True}, text=text)]
    assert deltas == [delta_of(text[:12]), delta_of(text[12:])]
    assert message == message_of(text)


async def test_event_without_text_is_echoed_as_silence(registry: RunnerRegistry) -> None:
    (end,) = await play(registry, {"echo": True}, {"completed": "stop"}, text=None)
    assert shown(end) == STOP


@pytest.mark.parametrize("text", [None, "", " \n"], ids=["none", "empty", "blank"])
async def test_message_without_text_fails_where_there_is_no_script(registry: RunnerRegistry, text: str | None) -> None:
    """D-24, LA-08."""
    session = start(registry, {}, text)
    (end,) = [shown(result) async for result in session.results()]
    await session.stop(StopReason.ENDED, 1)
    assert (end[0], end[1]["code"]) == ("run.failed", "runner.no_output")


async def test_echo_too_long_for_one_result_is_streamed_only(registry: RunnerRegistry) -> None:
    """D-25, D-28."""
    text = "12-wide word" + " " * MAX_RESULT_BYTES
    results = [shown(result) for result in await play(registry, {"echo": True}, text=text)]
    assert results == [delta_of("12-wide "), delta_of("word" + " " * MAX_RESULT_BYTES)]


async def test_steps_become_results_in_order(registry: RunnerRegistry) -> None:
    results = await play(
        registry,
        {"delta": "Hel"},
        {"delta": "lo"},
        {"message": "Hello"},
        {"state": {"scope": "conversation", "key": "mood", "value": None}},
        {"artifact": {"text": "hi", "name": "a.txt", "artifact_id": "a1"}},
        {"completed": {"finish_reason": "length", "message": "Bye", "usage": {"total_tokens": 3}}},
    )
    assert [shown(result) for result in results] == [
        delta_of("Hel"),
        delta_of("lo"),
        message_of("Hello"),
        ("state.updated", {"scope": "conversation", "key": "mood", "value": None}),
        (
            "artifact.created",
            {
                "artifact_type": "file",
                "artifact_id": "a1",
                "name": "a.txt",
                "mime_type": "text/plain",
                "size_bytes": 2,
                "content_base64": "aGk=",
            },
        ),
        ("run.completed", {"finish_reason": "length", "message": {"role": "assistant", "content": "Bye"}}),
    ]
    end = results[-1]
    assert isinstance(end, AgentRunResult)
    assert end.usage is not None
    assert end.usage.total_tokens == 3


async def test_script_may_be_json_text(registry: RunnerRegistry) -> None:
    session = start(registry, {"script": json.dumps([{"message": "hi"}, {"completed": "stop"}])})
    assert [shown(result) async for result in session.results()] == [message_of("hi"), STOP]
    await session.stop(StopReason.ENDED, 1)


async def test_script_may_fail_the_run(registry: RunnerRegistry) -> None:
    failure: JsonObject = {"code": "demo.broken", "error": "as told", "retryable": True}
    (end,) = await play(registry, {"failed": failure})
    assert shown(end) == ("run.failed", failure)


async def test_script_without_an_end_just_ends(registry: RunnerRegistry) -> None:
    (only,) = await play(registry, {"message": "that was it"})
    assert shown(only) == message_of("that was it")


async def test_flood_yields_that_many_deltas(registry: RunnerRegistry) -> None:
    results = await play(registry, {"flood": 2_000}, {"completed": "stop"})
    assert len(results) == 2_001
    assert shown(results[1_999]) == delta_of("2000 ")


async def test_after_end_goes_on_after_the_end(registry: RunnerRegistry) -> None:
    results = await play(
        registry, {"completed": "stop"}, {"after_end": [{"message": "still here"}, {"completed": "x"}]}
    )
    assert [shown(result)[0] for result in results] == ["run.completed", "message.completed", "run.completed"]


async def test_result_is_yielded_as_written(registry: RunnerRegistry) -> None:
    raw: JsonObject = {"type": "custom.note", "data": {"any": [1, None]}, "run_id": "another run"}
    assert await play(registry, {"result": raw}) == [raw]


@pytest.mark.parametrize("value", ["rubbish", 3, None, [], {"data": {}}], ids=repr)
async def test_malformed_values_break_the_protocol(registry: RunnerRegistry, value: JsonValue) -> None:
    (result,) = await play(registry, {"malformed": value})
    assert result == value
    with pytest.raises(MalformedResult):
        parse_result(result, run_id="run")


async def test_result_with_a_bad_payload_is_invalid(registry: RunnerRegistry) -> None:
    (result,) = await play(registry, {"result": {"type": "message.delta", "data": {"chunk": 3}}})
    with pytest.raises(InvalidPayload):
        validate_payload(parse_result(result, run_id="run").result)


async def test_crash_raises_its_message(registry: RunnerRegistry) -> None:
    session = start(registry, {"script": [{"delta": "a"}, {"crash": "on purpose"}]})
    seen, error = await read_until_error(session)
    assert [shown(result) for result in seen] == [delta_of("a")]
    assert isinstance(error, RunnerCrashed)
    assert (error.type_name, error.message) == ("ScriptedCrash", "on purpose")
    await session.stop(StopReason.ENDED, 1)


async def test_block_holds_the_loop(registry: RunnerRegistry) -> None:
    session = start(registry, {"script": [{"delta": "a"}, {"block": 0.8}]})
    _, error = await read_until_error(session)
    assert error.code == RunFailureCode.RUNNER_BLOCKED
    assert "runner:" in str(error)
    await session.stop(StopReason.ENDED, 1)


@pytest.mark.parametrize("step", [{"silence": True}, {"pause": 3_600}], ids=["silence", "pause"])
async def test_waiting_script_reports_its_cancellation(registry: RunnerRegistry, step: JsonObject) -> None:
    session = start(registry, {"script": [{"delta": "a"}, step, {"completed": "stop"}]})
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.CANCELLED, 5))
    (last,) = [result async for result in session.results()]
    assert shown(last)[1]["code"] == RunFailureCode.CANCELLED
    assert await stop is None


async def test_script_cancelled_after_its_end_says_nothing_more(registry: RunnerRegistry) -> None:
    session = start(registry, {"script": [{"completed": "stop"}, {"after_end": [{"silence": True}]}]})
    assert len(await session.next_batch()) == 1
    assert await session.stop(StopReason.ENDED, 5) is None
    assert [result async for result in session.results()] == []


async def test_deaf_script_does_not_heed_cancellation(registry: RunnerRegistry) -> None:
    session = start(registry, {"script": [{"delta": "a"}, {"deaf": 0.3}, {"completed": "stop"}]})
    await session.next_batch()
    assert await session.stop(StopReason.CANCELLED, 5) is None
    (end,) = [result async for result in session.results()]
    assert shown(end) == STOP


async def test_script_that_takes_too_long_times_out(registry: RunnerRegistry) -> None:
    session = start(registry, {"script": [{"delta": "a"}, {"silence": True}], "timeout": 0.05})
    _, end = [result async for result in session.results()]
    kind, data = shown(end)
    assert (kind, data["code"], data["retryable"]) == ("run.failed", RunFailureCode.RUNNER_TIMEOUT, True)
    await session.stop(StopReason.ENDED, 1)


@pytest.mark.parametrize(
    ("config", "code", "error"),
    [
        pytest.param({"script": 3}, "script.invalid", "config.script: must be a list", id="no-list"),
        pytest.param({"script": "[{"}, "script.invalid", "config.script: no valid JSON", id="no-json"),
        pytest.param({"script": ["delta"]}, "script.invalid", "config.script[0]: a step is", id="no-object"),
        pytest.param(
            {"script": [{"delta": "a", "pause": 1}]}, "script.invalid", "config.script[0]: a step", id="two-keys"
        ),
        pytest.param(
            {"script": [{"delta": "a"}, {"dleta": "b"}]},
            "script.unknown_step",
            "config.script[1]: 'dleta' is no step; steps are delta, ",
            id="unknown-step",
        ),
        pytest.param({"script": [{"delta": 3}]}, "script.delta.invalid", "config.script[0]: delta: ", id="value"),
        pytest.param(
            {"script": [{"pause": -1}]}, "script.pause.invalid", "greater than or equal to 0", id="negative-pause"
        ),
        pytest.param(
            {"script": [{"state": {"scope": "planet", "key": "k", "value": 1}}]},
            "script.state.invalid",
            "state.scope: ",
            id="unknown-scope",
        ),
        pytest.param(
            {"script": [{"completed": "stop"}, {"message": "late"}]},
            "script.message.invalid",
            "config.script[1]: follows the end",
            id="after-the-end",
        ),
        pytest.param(
            {"script": [{"after_end": []}]},
            "script.after_end.invalid",
            "config.script[0]: must be the last step",
            id="after-end-without-an-end",
        ),
        pytest.param(
            {"script": [{"completed": "stop"}, {"after_end": [{"delta": None}]}]},
            "script.delta.invalid",
            "config.script[1].after_end[0]: ",
            id="bad-step-after-the-end",
        ),
        pytest.param(
            {"script": [{"delta": "a"}] * (MAX_STEPS + 1)}, "script.invalid", "at most 10000 steps", id="too-many"
        ),
        pytest.param({"timeout": "soon"}, "timeout.invalid", "config.timeout: ", id="timeout-is-text"),
    ],
)
async def test_config_that_cannot_be_played_fails_at_once(
    registry: RunnerRegistry, config: JsonObject, code: str, error: str
) -> None:
    session = start(registry, config)
    (result,) = [result async for result in session.results()]
    kind, data = shown(result)
    assert (kind, data["code"]) == ("run.failed", code)
    assert error in str(data["error"])
    await session.stop(StopReason.ENDED, 1)


def test_descriptor_offers_a_form_with_a_timeout(registry: RunnerRegistry) -> None:
    descriptor = registry.get(SCRIPTED)
    assert [item["name"] for item in descriptor.config_schema] == ["script", "timeout"]
    assert descriptor.capabilities.streaming
    assert descriptor.capabilities.interrupt
