"""What the kit's host answers to each method, valid by the method's return model (PROTOCOL 9)."""

import base64
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from runhost.protocol import (
    AgentAPIError,
    AgentEventRecord,
    AgentRunContext,
    ErrorCode,
    EventPage,
    FunctionCall,
    HistoryPage,
    HistorySearchResult,
    Message,
    MessageChunk,
    SteeringPullResult,
    StrictModel,
    ToolCall,
    TranscriptItem,
)
from runhost.protocol.host_api import (
    CallToolParams,
    CountTokensParams,
    Deleted,
    Done,
    EventGetParams,
    FileContent,
    FileParams,
    HistorySearchParams,
    HostVersion,
    InvokeModelParams,
    KnowledgeBaseInfo,
    KnowledgeBaseList,
    ModelAnswer,
    ModelStreamEvent,
    Prompt,
    RerankParams,
    RerankResult,
    RerankScore,
    RetrievalEntry,
    RetrievalResult,
    RetrievalText,
    RetrieveParams,
    StateKeys,
    StateListParams,
    StateParams,
    StateSetParams,
    StateValue,
    StorageKeys,
    StorageParams,
    StorageSetParams,
    StorageValue,
    TokenCount,
    ToolDetail,
    ToolParams,
    ToolResult,
)
from runners.conformance.contexts import FILE_NAME
from runners.conformance.scenario import HostManner
from runners.conformance.speech import USAGE, pieces_of, reply_to, text_of

_FILE: Final = b"Content of the conformance file."
_CHARACTERS_PER_TOKEN: Final = 4


class NoAnswer(Exception):
    """A call that is valid and granted, and has no answer; `error` says why."""

    def __init__(self, error: AgentAPIError) -> None:
        super().__init__(error.message)
        self.error = error


class Answers:
    """Answers the calls of one run. State and storage last as long as the run.

    Args:
        context: What the run was given.
        manner: How models and tools answer.
    """

    def __init__(self, context: AgentRunContext, manner: HostManner) -> None:
        self._context = context
        self._manner = manner
        self._state: dict[tuple[str, str], Any] = {}
        self._storage: dict[tuple[str, str], str] = {}
        self._methods: dict[str, Callable[[Any], StrictModel]] = {
            "invoke_llm": self._invoke,
            "invoke_llm_with_usage": self._invoke,
            "invoke_rerank": _rerank,
            "count_tokens": _count_tokens,
            "get_tool_detail": _describe_tool,
            "call_tool": self._call_tool,
            "list_knowledge_bases": self._list_bases,
            "retrieve_knowledge": _retrieve,
            "get_prompt": lambda _: Prompt(messages=[Message(role="system", content="Be brief.")]),
            "history_page": lambda _: HistoryPage(items=[self._item()]),
            "history_search": self._search,
            "event_get": self._get_event,
            "event_page": lambda _: EventPage(items=[self._event()]),
            "steering_pull": lambda _: SteeringPullResult(),
            "artifact_metadata": _no_artifact,
            "artifact_read": _no_artifact,
            "artifact_read_range": _no_artifact,
            "state_get": lambda params: StateValue(value=self._state.get((params.scope, params.key))),
            "state_set": self._set_state,
            "state_delete": self._delete_state,
            "state_list": self._list_state,
            "get_file": _get_file,
            "get_langbot_version": lambda _: HostVersion(langbot_version="conformance"),
        }
        for area in ("plugin", "workspace"):
            self._methods |= self._storage_methods(area)

    @property
    def methods(self) -> frozenset[str]:
        """The methods that are answered at once; the others stream."""
        return frozenset(self._methods)

    def answer(self, method: str, params: StrictModel) -> StrictModel:
        """Answer a call whose parameters are valid.

        Raises:
            NoAnswer: what it asks for does not exist.
        """
        return self._methods[method](params)

    def stream(self, params: InvokeModelParams) -> Iterator[ModelStreamEvent]:
        """Answer a streaming model call; usage comes last."""
        message = self._invoke(params).message
        if message.tool_calls:
            yield ModelStreamEvent(chunk=MessageChunk(tool_calls=message.tool_calls, is_final=True))
        for piece in pieces_of(text_of(message.content)):
            yield ModelStreamEvent(chunk=MessageChunk(content=piece))
        if self._manner is not HostManner.ANSWERS_WITHOUT_USAGE:
            yield ModelStreamEvent(usage=USAGE)

    def _invoke(self, params: InvokeModelParams) -> ModelAnswer:
        """Ask for a tool once, where tools are offered; then answer."""
        usage = None if self._manner is HostManner.ANSWERS_WITHOUT_USAGE else USAGE
        if params.funcs and not any(message.role == "tool" for message in params.messages):
            call = ToolCall(id="call-1", function=FunctionCall(name=params.funcs[0].name, arguments="{}"))
            return ModelAnswer(message=Message(role="assistant", tool_calls=[call]), usage=usage)
        said = [text_of(message.content) for message in params.messages if message.role == "user"]
        reply = reply_to(said[-1] if said else "", self._manner)
        return ModelAnswer(message=Message(role="assistant", content=reply), usage=usage)

    def _call_tool(self, params: CallToolParams) -> ToolResult:
        return ToolResult(result={"text": reply_to(f"{params.tool_name} was called", self._manner)})

    def _list_bases(self, _params: StrictModel) -> KnowledgeBaseList:
        bases = [base for base in self._context.resources.knowledge_bases if base.allows("list")]
        return KnowledgeBaseList(items=[KnowledgeBaseInfo(kb_id=base.kb_id, kb_name=base.kb_name) for base in bases])

    def _search(self, params: HistorySearchParams) -> HistorySearchResult:
        return HistorySearchResult(items=[self._item()], query=params.query)

    def _get_event(self, params: EventGetParams) -> AgentEventRecord:
        if params.event_id != self._context.event.event_id:
            raise _not_found("event_id: there is no such event")
        return self._event()

    def _event(self) -> AgentEventRecord:
        event = self._context.event
        return AgentEventRecord(
            event_id=event.event_id,
            event_type=event.event_type,
            source=event.source,
            conversation_id=self._context.context.conversation_id,
            input_summary=(self._context.input.text or "")[:1_000],
            created_at=int(time.time()),
        )

    def _item(self) -> TranscriptItem:
        return TranscriptItem(
            transcript_id="conformance-item",
            event_id="conformance-earlier",
            conversation_id=self._context.context.conversation_id,
            role="user",
            content="An earlier message.",
            seq=1,
            created_at=int(time.time()),
        )

    def _set_state(self, params: StateSetParams) -> Done:
        self._state[params.scope, params.key] = params.value
        return Done()

    def _delete_state(self, params: StateParams) -> Deleted:
        return Deleted(deleted=self._state.pop((params.scope, params.key), None) is not None)

    def _list_state(self, params: StateListParams) -> StateKeys:
        keys = sorted(key for scope, key in self._state if scope == params.scope)
        matching = [key for key in keys if key.startswith(params.prefix or "")]
        return StateKeys(keys=matching[: params.limit], has_more=len(matching) > params.limit)

    def _storage_methods(self, area: str) -> dict[str, Callable[[Any], StrictModel]]:
        def get(params: StorageParams) -> StorageValue:
            return StorageValue(value_base64=self._storage.get((area, params.key)))

        def set_(params: StorageSetParams) -> Done:
            self._storage[area, params.key] = params.value_base64
            return Done()

        def delete(params: StorageParams) -> Deleted:
            return Deleted(deleted=self._storage.pop((area, params.key), None) is not None)

        def keys(_params: StrictModel) -> StorageKeys:
            return StorageKeys(keys=sorted(key for its_area, key in self._storage if its_area == area))

        return {
            f"get_{area}_storage": get,
            f"set_{area}_storage": set_,
            f"delete_{area}_storage": delete,
            f"get_{area}_storage_keys": keys,
        }


def _rerank(params: RerankParams) -> RerankResult:
    count = min(len(params.documents), params.top_k or len(params.documents))
    return RerankResult(scores=[RerankScore(index=index, relevance_score=1 / (index + 1)) for index in range(count)])


def _count_tokens(params: CountTokensParams) -> TokenCount:
    characters = sum(len(text_of(message.content)) for message in params.messages)
    return TokenCount(tokens=characters // _CHARACTERS_PER_TOKEN, exact=False)


def _describe_tool(params: ToolParams) -> ToolDetail:
    schema = {"type": "object", "properties": {}}
    return ToolDetail(tool_name=params.tool_name, description="Answers without a question.", parameters=schema)


def _retrieve(params: RetrieveParams) -> RetrievalResult:
    passage = RetrievalText(text=f"A passage about: {params.query_text[:100]}")
    return RetrievalResult(items=[RetrievalEntry(id="passage-1", content=[passage], score=1.0)])


def _get_file(params: FileParams) -> FileContent:
    return FileContent(
        file_key=params.file_key,
        file_name=FILE_NAME,
        mime_type="text/plain",
        size_bytes=len(_FILE),
        content_base64=base64.b64encode(_FILE).decode("ascii"),
    )


def _no_artifact(_params: StrictModel) -> StrictModel:
    raise _not_found("artifact_id: there is no such artifact")


def _not_found(message: str) -> NoAnswer:
    return NoAnswer(AgentAPIError(code=ErrorCode.NOT_FOUND.value, message=message))
