"""The runner's proxy: every method of PROTOCOL 9, what it sends, and what it makes of the answers."""

import inspect
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from runhost.protocol import AgentAPIException, AgentRunContext, AgentRunResult, MessageChunk, Usage
from runhost.protocol.host_api import (
    HOST_METHODS,
    FileContent,
    ModelStreamEvent,
    ToolFunction,
)
from runhost.sdk import AgentAPIError, AgentRunAPIProxy, AgentRunner, connected, content_of, results
from tests.runners.contexts import run_context
from tests.sdk.calls import CALL, CALLS, ITEM, PROMPT, STREAMS, USES, Use
from tests.sdk.connections import ScriptedConnection, granted, proxy

NEED_NOTHING = {"get_langbot_version", "list_knowledge_bases"}


async def used(api: AgentRunAPIProxy, method: str, use: Use) -> Any:
    """Use a method, of a stream all events."""
    result = use(api)
    return [event async for event in result] if method in STREAMS else await result


EACH = pytest.mark.parametrize(("method", "use"), USES.items(), ids=USES.keys())


def test_every_method_of_the_protocol_is_tested_here() -> None:
    assert USES.keys() == HOST_METHODS.keys()


@pytest.mark.parametrize("method", HOST_METHODS)
def test_method_takes_what_the_protocol_says(method: str) -> None:
    """PROTOCOL 9.1 to 9.9: names, order and defaults of the parameters."""
    wire = HOST_METHODS[method]
    function = getattr(AgentRunAPIProxy, method)
    assert inspect.isasyncgenfunction(function) if wire.is_stream else inspect.iscoroutinefunction(function)

    taken = list(inspect.signature(function).parameters.values())[1:]

    names = ["value" if name == "value_base64" else name for name in wire.params.model_fields]
    assert [parameter.name for parameter in taken] == names
    for parameter, field in zip(taken, wire.params.model_fields.values(), strict=True):
        # A tool is called with parameters, be they none.
        if field.is_required() or parameter.name == "parameters":
            assert parameter.default is inspect.Parameter.empty
        else:
            assert parameter.default == field.get_default()


@pytest.mark.parametrize(("method", "use", "sent", "answer", "result"), CALLS, ids=[method for method, *_ in CALLS])
async def test_call_sends_and_returns_what_the_protocol_says(
    method: str, use: Use, sent: dict[str, Any], answer: dict[str, Any], result: Any
) -> None:
    api, connection = proxy(answer)

    returned = await use(api)

    assert connection.calls == [(method, sent)]
    HOST_METHODS[method].params.model_validate(sent)
    if result is not None or method in {"state_set", "set_plugin_storage", "set_workspace_storage"}:
        assert returned == result
    else:
        assert returned == HOST_METHODS[method].returns.model_validate(answer)


async def test_stream_of_chunks_leaves_usage_out() -> None:
    """PROTOCOL 9.1: the methods without usage keep their plain return types."""
    events = [{"chunk": {"content": "A"}}, {"chunk": {"content": "B"}, "usage": None}, {"usage": {"total_tokens": 3}}]
    api, connection = proxy(*events)

    chunks = [chunk async for chunk in api.invoke_llm_stream("gpt", PROMPT)]

    assert chunks == [MessageChunk(content="A"), MessageChunk(content="B", mode="append")]
    assert connection.calls == [("invoke_llm_stream", CALL)]


async def test_stream_of_events_may_end_with_usage_alone() -> None:
    api, _ = proxy({"chunk": {"content": "A"}}, {"usage": {"total_tokens": 3}})

    events = [event async for event in api.invoke_llm_stream_events("gpt", PROMPT)]

    assert events == [
        ModelStreamEvent(chunk=MessageChunk(content="A")),
        ModelStreamEvent(usage=Usage(total_tokens=3)),
    ]


@pytest.mark.parametrize("method", STREAMS)
async def test_stream_that_is_left_ends_in_the_host(method: str) -> None:
    api, connection = proxy({"chunk": {"content": "A"}}, {"chunk": {"content": "B"}})

    async with aclosing(STREAMS[method](api)) as events:
        await anext(events)

    assert connection.cancelled == [method]


@pytest.mark.parametrize("method", [method for method in USES if method not in NEED_NOTHING])
async def test_method_that_is_not_granted_is_refused_without_asking(method: str) -> None:
    """PM-1 to PM-3, PM-8, as far as the context tells."""
    api, connection = proxy({"items": [], "langbot_version": "1"}, ctx=run_context())

    with pytest.raises(AgentAPIException, match="may not") as refusal:
        await used(api, method, USES[method])

    assert refusal.value.error.code == "unauthorized"
    assert "ctx." in refusal.value.error.message
    assert connection.calls == []


@pytest.mark.parametrize(
    "use",
    [
        lambda api: api.invoke_llm("ranker", PROMPT),
        lambda api: anext(api.invoke_llm_stream("ranker", PROMPT)),
        lambda api: api.count_tokens("ranker", PROMPT),
        lambda api: api.invoke_rerank("unknown", "q", ["a"]),
        lambda api: api.call_tool("look-only", {}),
        lambda api: api.get_tool_detail("unknown"),
        lambda api: api.retrieve_knowledge("unknown", "q"),
        lambda api: api.get_file("unknown"),
    ],
    ids=["invoke", "stream", "count", "rerank", "call", "detail", "retrieve", "file"],
)
async def test_resource_without_the_operation_is_refused(use: Use) -> None:
    api, connection = proxy({})

    with pytest.raises(AgentAPIException, match=r"ctx\.resources\.\w+ lists what it may"):
        await use(api)

    assert connection.calls == []


async def test_document_of_a_base_is_read_like_a_file() -> None:
    """D-13: the context lists it with the operation `knowledge`."""
    document = {"file_id": "page-1", "operations": ["knowledge"]}
    answer = {"file_key": "page-1", "size_bytes": 2, "content_base64": "AAE="}
    api, _ = proxy(answer, ctx=granted({"files": [document]}))

    assert await api.read_file("page-1") == b"\x00\x01"


async def test_refusal_of_the_host_wins() -> None:
    """S-2, D-15: what was granted at the start may have been taken back."""
    error = AgentAPIError(code="unauthorized", message="taken back", details={"since": 1})
    api, _ = proxy(AgentAPIException(error))

    with pytest.raises(AgentAPIException) as refusal:
        await api.call_tool("clock", {})

    assert refusal.value.error == error


@pytest.mark.parametrize(
    ("use", "field"),
    [
        (lambda api: api.state_get("galaxy", "k"), "scope"),
        (lambda api: api.state_get("actor", ""), "key"),
        (lambda api: api.state_set("actor", "k", object()), "value"),
        (lambda api: api.state_set("actor", "k", float("nan")), "value"),
        (lambda api: api.set_plugin_storage("k", "text"), "value"),
        (lambda api: api.history_page(limit=0), "limit"),
        (lambda api: api.history_page(direction="sideways"), "direction"),
        (lambda api: api.artifact_read("a1", offset=-1), "offset"),
        (lambda api: api.artifact_read("a1", limit=0), "limit"),
        (lambda api: api.retrieve_knowledge("manual", "q", top_k=101), "top_k"),
        (lambda api: api.invoke_llm("gpt", []), "messages"),
        (lambda api: api.invoke_llm("gpt", [{"role": "robot"}]), r"messages\[0\].role"),
        (lambda api: api.steering_pull("some"), "mode"),
    ],
)
async def test_wrong_argument_is_named(use: Use, field: str) -> None:
    api, connection = proxy({})

    with pytest.raises(AgentAPIException, match=rf"\b{field}: ") as refusal:
        await use(api)

    assert refusal.value.error.code == "invalid_argument"
    assert connection.calls == []


@pytest.mark.parametrize(
    "use",
    [
        lambda api: api.state_set("actor", "k", "x" * (256 * 1024 - 1)),
        lambda api: api.state_set("actor", "k", "你" * 90_000),
        lambda api: api.set_plugin_storage("k", bytes(10 * 1024 * 1024 + 1)),
        lambda api: api.set_workspace_storage("k", bytearray(10 * 1024 * 1024 + 1)),
        lambda api: api.call_tool("clock", {"x": "x" * 1024 * 1024}),
    ],
    ids=["state", "state in UTF-8", "plugin storage", "workspace storage", "request"],
)
async def test_too_much_is_refused_without_asking(use: Use) -> None:
    """D-16, D-17: 256 KiB of state, 10 MiB of storage, 1 MiB of a request."""
    api, connection = proxy({})

    with pytest.raises(AgentAPIException) as refusal:
        await use(api)

    assert refusal.value.error.code == "payload_too_large"
    assert connection.calls == []


async def test_as_much_as_allowed_is_sent() -> None:
    api, connection = proxy({})

    await api.state_set("actor", "k", "x" * (256 * 1024 - 2))
    await api.set_plugin_storage("k", bytes(10 * 1024 * 1024))

    assert [method for method, _ in connection.calls] == ["state_set", "set_plugin_storage"]


@EACH
async def test_nothing_is_sent_after_the_deadline(method: str, use: Use) -> None:
    """P-T1."""
    api, connection = proxy({}, ctx=granted(seconds_left=-1))

    with pytest.raises(AgentAPIException, match="nothing was sent") as refusal:
        await used(api, method, use)

    assert refusal.value.error.code == "deadline_exceeded"
    assert connection.calls == []


@EACH
async def test_call_ends_at_the_deadline(method: str, use: Use) -> None:
    """P-T1: and is given up in the host as well."""
    api, connection = proxy(None, ctx=granted(seconds_left=0.05))

    with pytest.raises(AgentAPIException, match="may or may not") as refusal:
        await used(api, method, use)

    assert refusal.value.error.code == "deadline_exceeded"
    assert connection.cancelled == [method]


async def test_time_between_two_events_is_the_readers_own() -> None:
    api, connection = proxy({"chunk": {"content": "A"}}, None, ctx=granted(seconds_left=0.05))
    chunks = api.invoke_llm_stream("gpt", PROMPT)

    assert (await anext(chunks)).content == "A"
    with pytest.raises(AgentAPIException, match="deadline_exceeded"):
        await anext(chunks)

    assert connection.cancelled == ["invoke_llm_stream"]


@pytest.mark.parametrize("answer", [{"tokens": 3}, {"tokens": 3, "exact": True, "more": 1}, [], 7], ids=repr)
async def test_answer_that_fits_no_model_is_an_error(answer: Any) -> None:
    """PROTOCOL 10: a malformed answer raises like a structured error; return models are strict (P-V9)."""
    api, _ = proxy(answer)

    with pytest.raises(AgentAPIException, match="does not fit the protocol") as failure:
        await api.count_tokens("gpt", PROMPT)

    assert failure.value.error.code == "runtime_error"


async def test_malformed_event_of_a_stream_is_an_error() -> None:
    api, connection = proxy({"chunk": {"content": "A"}}, {"chunk": 7})

    with pytest.raises(AgentAPIException, match="runtime_error"):
        _ = [chunk async for chunk in api.invoke_llm_stream("gpt", PROMPT)]

    assert connection.cancelled == ["invoke_llm_stream"]


async def test_error_that_is_mere_text_gets_a_code() -> None:
    """PROTOCOL 10: runners never match strings."""
    api, _ = proxy("Action not found")

    with pytest.raises(AgentAPIException, match="Action not found") as failure:
        await api.get_prompt()

    assert failure.value.error.code == "host.action_error"


@pytest.mark.parametrize("text", ["%%%", "AAE", "é"])
async def test_content_that_is_no_base64_is_an_error(text: str) -> None:
    api, _ = proxy({"value_base64": text})

    with pytest.raises(AgentAPIException, match="no base64") as failure:
        await api.get_plugin_storage("k")

    assert failure.value.error.code == "runtime_error"


async def test_storage_without_a_value_is_none() -> None:
    api, _ = proxy({"value_base64": None})

    assert await api.get_workspace_storage("k") is None


async def test_odd_text_is_sent_exactly() -> None:
    """D-31."""
    api, connection = proxy({})

    await api.state_set("actor", "k", {"a": "\ud800\0", "b": [1, 2.5, None]})

    assert connection.calls[0][1]["value"] == {"a": "\ud800\0", "b": [1, 2.5, None]}


@pytest.mark.parametrize(
    ("direction", "cursors"),
    [("backward", ("before_cursor", "after_cursor")), ("forward", ("after_cursor", "before_cursor"))],
)
async def test_history_is_read_page_by_page(direction: Any, cursors: tuple[str, str]) -> None:
    pages = [
        {"items": [ITEM | {"transcript_id": "t1"}], "next_cursor": "c1", "has_more": True},
        {"items": [ITEM | {"transcript_id": "t2"}], "next_cursor": None, "has_more": False},
    ]
    api, connection = proxy(*pages)

    items = [item async for item in api.iter_history(direction=direction, include_artifacts=True)]

    assert [item.transcript_id for item in items] == ["t1", "t2"]
    used_cursor, other = cursors
    assert [(params[used_cursor], params[other]) for _, params in connection.calls] == [(None, None), ("c1", None)]
    assert [params["limit"] for _, params in connection.calls] == [100, 100]


async def test_history_that_leads_nowhere_is_an_error() -> None:
    api, connection = proxy({"items": [ITEM], "next_cursor": "c1", "has_more": True})

    with pytest.raises(AgentAPIException, match="no cursor that leads on"):
        _ = [item async for item in api.iter_history(before_cursor="c1")]

    assert len(connection.calls) == 1


async def test_artifact_is_read_whole() -> None:
    parts = [
        {"artifact_id": "a1", "content_base64": "AAEC", "size_bytes": 5, "has_more": True},
        {"artifact_id": "a1", "content_base64": "AwQ=", "size_bytes": 5, "offset": 3},
    ]
    api, connection = proxy(*parts)

    assert await api.read_artifact("a1") == bytes(range(5))
    assert [params["offset"] for _, params in connection.calls] == [0, 3]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"content_base64": "AAEC", "size_bytes": 9, "has_more": True}, "payload_too_large"),
        ({"content_base64": "AAECAwQF"}, "payload_too_large"),
        ({"content_base64": "", "has_more": True}, "runtime_error"),
        ({"file_key": "s3://elsewhere"}, "runtime_error"),
    ],
    ids=["size says so", "too long", "nothing comes", "content elsewhere"],
)
async def test_artifact_that_cannot_be_read_whole_is_an_error(part: dict[str, Any], code: str) -> None:
    api, _ = proxy({"artifact_id": "a1", **part})

    with pytest.raises(AgentAPIException) as failure:
        await api.read_artifact("a1", max_bytes=5)

    assert failure.value.error.code == code


def test_content_of_a_file_is_its_bytes() -> None:
    assert content_of(FileContent(file_key="f", size_bytes=2, content_base64="AAE=")) == b"\x00\x01"


async def test_tools_become_functions_for_a_model() -> None:
    api, connection = proxy({"tool_name": "clock", "description": "Tells the time", "human_desc": "Uhr"})

    assert await api.tool_functions() == [ToolFunction(name="clock", description="Tells the time", parameters={})]
    assert connection.calls == [("get_tool_detail", {"tool_name": "clock"})]


class Curious(AgentRunner):
    async def run(self, ctx: AgentRunContext) -> AsyncIterator[AgentRunResult]:
        yield results.completed(ctx, await self.get_run_api(ctx).get_langbot_version())


async def test_runner_reaches_the_host_of_its_run() -> None:
    with connected(ScriptedConnection({"langbot_version": "1.2"})):
        [end] = [result async for result in Curious().run(granted())]
    assert end.data == {"finish_reason": "1.2"}


async def test_runner_without_a_host_is_told_so() -> None:
    with pytest.raises(RuntimeError, match="There is no host to reach"):
        _ = [result async for result in Curious().run(granted())]
