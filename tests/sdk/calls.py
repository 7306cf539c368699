"""How each method of the host API is used, what it sends then, and what comes back."""

from collections.abc import Callable
from typing import Any

from runhost.protocol import Message, Usage
from runhost.protocol.host_api import (
    FileContent,
    HistoryFilters,
    ModelAnswer,
    RerankScore,
    RetrievalEntry,
    StateKeys,
    TokenCount,
    ToolDetail,
    ToolFunction,
    ToolResult,
)
from runhost.sdk import AgentRunAPIProxy

Use = Callable[[AgentRunAPIProxy], Any]

PROMPT = [Message(role="user", content="Hi")]
PROMPT_JSON = [{"role": "user", "content": "Hi"}]
MESSAGE = {"role": "assistant", "content": "Hello"}
CLOCK = ToolFunction(name="clock", parameters={"type": "object"})
ITEM = {"transcript_id": "t1", "event_id": "e1", "role": "user"}
EVENT = {"event_id": "e1", "event_type": "message.received", "source": "api"}
PART = {"artifact_id": "a1", "content_base64": "AAE="}
CALL = {"llm_model_uuid": "gpt", "messages": PROMPT_JSON, "funcs": None, "extra_args": None}
PAGE = {"conversation_id": None, "before_cursor": None, "limit": 50}

# Method, how it is used, what is sent, what is answered, what comes back.
CALLS: list[tuple[str, Use, dict[str, Any], dict[str, Any], Any]] = [
    (
        "invoke_llm",
        lambda api: api.invoke_llm("gpt", PROMPT, [CLOCK], {"temperature": 0.5}),
        CALL | {"funcs": [{"name": "clock", "parameters": {"type": "object"}}], "extra_args": {"temperature": 0.5}},
        {"message": MESSAGE, "usage": None},
        Message(role="assistant", content="Hello"),
    ),
    (
        "invoke_llm_with_usage",
        lambda api: api.invoke_llm_with_usage("gpt", PROMPT),
        CALL,
        {"message": MESSAGE, "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        ModelAnswer(
            message=Message(role="assistant", content="Hello"), usage=Usage(prompt_tokens=1, completion_tokens=2)
        ),
    ),
    (
        "invoke_rerank",
        lambda api: api.invoke_rerank("ranker", "q", ("a", "b"), top_k=1),
        {"rerank_model_id": "ranker", "query": "q", "documents": ["a", "b"], "top_k": 1},
        {"scores": [{"index": 1, "relevance_score": 0.5}], "usage": None},
        [RerankScore(index=1, relevance_score=0.5)],
    ),
    (
        "count_tokens",
        lambda api: api.count_tokens("gpt", PROMPT),
        {"llm_model_uuid": "gpt", "messages": PROMPT_JSON, "funcs": None},
        {"tokens": 3, "exact": True},
        TokenCount(tokens=3, exact=True),
    ),
    (
        "get_tool_detail",
        lambda api: api.get_tool_detail("look-only"),
        {"tool_name": "look-only"},
        {"tool_name": "look-only", "parameters": {"type": "object"}},
        ToolDetail(tool_name="look-only", parameters={"type": "object"}),
    ),
    (
        "call_tool",
        lambda api: api.call_tool("clock", {"zone": "UTC"}),
        {"tool_name": "clock", "parameters": {"zone": "UTC"}},
        {"result": ["12:00"], "is_error": False},
        ToolResult(result=["12:00"]),
    ),
    ("list_knowledge_bases", lambda api: api.list_knowledge_bases(), {}, {"items": []}, []),
    (
        "retrieve_knowledge",
        lambda api: api.retrieve_knowledge("manual", "how?"),
        {"kb_id": "manual", "query_text": "how?", "top_k": 5, "filters": None},
        {"items": [{"id": "p1", "content": [{"type": "text", "text": "so"}], "score": 1}]},
        [RetrievalEntry.model_validate({"id": "p1", "content": [{"text": "so"}], "score": 1.0})],
    ),
    ("get_prompt", lambda api: api.get_prompt(), {}, {"messages": PROMPT_JSON}, PROMPT),
    (
        "history_page",
        lambda api: api.history_page(),
        PAGE | {"after_cursor": None, "direction": "backward", "include_artifacts": False},
        {"items": [ITEM], "has_more": True},
        None,
    ),
    (
        "history_search",
        lambda api: api.history_search("cat", HistoryFilters(roles=["user"])),
        {"query": "cat", "filters": {"roles": ["user"]}, "top_k": 10},
        {"items": [ITEM], "query": "cat"},
        None,
    ),
    ("event_get", lambda api: api.event_get("e1"), {"event_id": "e1"}, EVENT, None),
    (
        "event_page",
        lambda api: api.event_page(event_types=("message.received",)),
        PAGE | {"event_types": ["message.received"]},
        {"items": [EVENT]},
        None,
    ),
    ("steering_pull", lambda api: api.steering_pull(), {"mode": "all", "limit": None}, {"items": []}, None),
    (
        "artifact_metadata",
        lambda api: api.artifact_metadata("a1"),
        {"artifact_id": "a1"},
        {"artifact_id": "a1", "artifact_type": "file", "source": "runner"},
        None,
    ),
    (
        "artifact_read",
        lambda api: api.artifact_read("a1"),
        {"artifact_id": "a1", "offset": 0, "limit": None},
        PART,
        None,
    ),
    (
        "artifact_read_range",
        lambda api: api.artifact_read_range("a1", 7),
        {"artifact_id": "a1", "offset": 7, "length": 65_536},
        PART,
        None,
    ),
    ("state_get", lambda api: api.state_get("actor", "k"), {"scope": "actor", "key": "k"}, {"value": [1]}, [1]),
    (
        "state_set",
        lambda api: api.state_set("actor", "k", None),
        {"scope": "actor", "key": "k", "value": None},
        {},
        None,
    ),
    (
        "state_delete",
        lambda api: api.state_delete("actor", "k"),
        {"scope": "actor", "key": "k"},
        {"deleted": True},
        True,
    ),
    (
        "state_list",
        lambda api: api.state_list("runner"),
        {"scope": "runner", "prefix": None, "limit": 100},
        {"keys": ["a"], "has_more": True},
        StateKeys(keys=["a"], has_more=True),
    ),
    *(
        call
        for area in ("plugin", "workspace")
        for call in [
            (
                f"get_{area}_storage",
                lambda api, area=area: getattr(api, f"get_{area}_storage")("k"),
                {"key": "k"},
                {"value_base64": "AAE="},
                b"\x00\x01",
            ),
            (
                f"set_{area}_storage",
                lambda api, area=area: getattr(api, f"set_{area}_storage")("k", b"\x00\x01"),
                {"key": "k", "value_base64": "AAE="},
                {},
                None,
            ),
            (
                f"delete_{area}_storage",
                lambda api, area=area: getattr(api, f"delete_{area}_storage")("k"),
                {"key": "k"},
                {"deleted": False},
                False,
            ),
            (
                f"get_{area}_storage_keys",
                lambda api, area=area: getattr(api, f"get_{area}_storage_keys")(),
                {},
                {"keys": ["a", "b"]},
                ["a", "b"],
            ),
        ]
    ),
    (
        "get_file",
        lambda api: api.get_file("logo"),
        {"file_key": "logo"},
        {"file_key": "logo", "size_bytes": 2, "content_base64": "AAE="},
        FileContent(file_key="logo", size_bytes=2, content_base64="AAE="),
    ),
    ("get_langbot_version", lambda api: api.get_langbot_version(), {}, {"langbot_version": "1.2"}, "1.2"),
]
# Answered by events instead.
STREAMS: dict[str, Callable[[AgentRunAPIProxy], Any]] = {
    "invoke_llm_stream": lambda api: api.invoke_llm_stream("gpt", PROMPT),
    "invoke_llm_stream_events": lambda api: api.invoke_llm_stream_events("gpt", PROMPT),
}

USES: dict[str, Use] = {**{method: use for method, use, *_ in CALLS}, **STREAMS}
