"""The run-scoped host API: every method with what it takes and what it answers (PROTOCOL 9).

Both sides read this one table: the host refuses to start when a method of it is not built, and the runner's
proxy calls by it. Parameters and answers are JSON objects and strict (P-V9).
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints

from runhost.protocol.artifacts import ArtifactMetadata, ArtifactReadResult
from runhost.protocol.content import Message, MessageChunk, Usage
from runhost.protocol.history import AgentEventRecord, EventPage, HistoryPage, HistorySearchResult
from runhost.protocol.identifiers import Identifier, StateScope
from runhost.protocol.json import Count, EpochSeconds, JsonObject, JsonValue, StrictModel
from runhost.protocol.steering import SteeringPullResult

MAX_REQUEST_BYTES: Final = 1024 * 1024
"""Most that a call may send as JSON (D-16); calls that carry bytes have their own limit."""

MAX_RESPONSE_BYTES: Final = 10 * 1024 * 1024
"""Most that a call may answer: JSON, or the bytes inside it before base64 (D-16)."""

MAX_STORAGE_VALUE_BYTES: Final = 10 * 1024 * 1024
"""Most that one storage value may hold (D-17)."""

MAX_PAGE_ITEMS: Final = 100
DEFAULT_ARTIFACT_READ_BYTES: Final = 1024 * 1024
MAX_ARTIFACT_READ_BYTES: Final = 10 * 1024 * 1024
DEFAULT_RANGE_BYTES: Final = 65_536
MAX_MESSAGES: Final = 10_000
MAX_FUNCTIONS: Final = 1_000
MAX_RERANK_DOCUMENTS: Final = 1_000

# JSON around a value that is as large as it may be, once it is base64.
_VALUE_REQUEST_BYTES: Final = MAX_STORAGE_VALUE_BYTES * 4 // 3 + 4096

Cursor: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
"""An opaque position; never compared, never made up (D-46)."""

QueryText: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]

StateKey: TypeAlias = Identifier
PageLimit: TypeAlias = Annotated[int, Field(ge=1)]
"""Items asked for; what is above the cap of 100 is capped, not refused (PROTOCOL 9.4)."""


class ToolFunction(StrictModel):
    """A function that a model may ask to be called.

    Attributes:
        name: Tool name.
        description: What it does, for the model.
        parameters: JSON schema of its arguments.
    """

    name: Identifier
    description: str | None = None
    parameters: JsonObject = Field(default_factory=dict)


class NoParams(StrictModel):
    """Parameters of a method that takes none."""


class Done(StrictModel):
    """Answer of a method that only acts."""


# --- models (PROTOCOL 9.1) ---------------------------------------------------------------------------------


class InvokeModelParams(StrictModel):
    """A model call.

    Attributes:
        llm_model_uuid: The model.
        messages: The whole prompt.
        funcs: Functions that the model may ask for.
        extra_args: Further arguments of the provider, such as `temperature`.
    """

    llm_model_uuid: Identifier
    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    funcs: list[ToolFunction] | None = Field(default=None, max_length=MAX_FUNCTIONS)
    extra_args: JsonObject | None = None


class ModelAnswer(StrictModel):
    """What a model said. `usage` is null where the provider gives none, never zeros (D-32)."""

    message: Message
    usage: Usage | None = None


class ModelStreamEvent(StrictModel):
    """One step of a streamed answer; the last one may carry usage alone."""

    chunk: MessageChunk | None = None
    usage: Usage | None = None


class CountTokensParams(StrictModel):
    """A prompt whose tokens are counted without calling the model."""

    llm_model_uuid: Identifier
    messages: list[Message] = Field(max_length=MAX_MESSAGES)
    funcs: list[ToolFunction] | None = Field(default=None, max_length=MAX_FUNCTIONS)


class TokenCount(StrictModel):
    """Tokens of a prompt; `exact` is false where they are estimated from its length."""

    tokens: Count
    exact: bool


class RerankParams(StrictModel):
    """Documents to put in order by how well they answer a query."""

    rerank_model_id: Identifier
    query: QueryText
    documents: list[str] = Field(min_length=1, max_length=MAX_RERANK_DOCUMENTS)
    top_k: Annotated[int, Field(ge=1)] | None = None


class RerankScore(StrictModel):
    """Score of one document; `index` is its place in the request, from 0."""

    index: Count
    relevance_score: float


class RerankResult(StrictModel):
    """Scores, best first, at most `top_k`."""

    scores: list[RerankScore]
    usage: Usage | None = None


# --- tools (PROTOCOL 9.2) ----------------------------------------------------------------------------------


class ToolParams(StrictModel):
    """Names a tool."""

    tool_name: Identifier


class ToolDetail(StrictModel):
    """What a tool is and takes.

    Attributes:
        tool_name: Name to call it by.
        human_desc: What it does, for people.
        description: What it does, for a model.
        parameters: JSON schema of its arguments.
    """

    tool_name: Identifier
    human_desc: str | None = None
    description: str | None = None
    parameters: JsonObject = Field(default_factory=dict)


class CallToolParams(StrictModel):
    """A tool call."""

    tool_name: Identifier
    parameters: JsonObject = Field(default_factory=dict)


class ToolResult(StrictModel):
    """What a tool returned; a tool that reports an error of its own has `is_error` set."""

    result: JsonValue = None
    is_error: bool = False


# --- knowledge (PROTOCOL 9.3, D-13) ------------------------------------------------------------------------


class RetrieveParams(StrictModel):
    """A question to a knowledge base; `filters` are equalities on the metadata of documents."""

    kb_id: Identifier
    query_text: QueryText
    top_k: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = 5
    filters: JsonObject | None = None


class RetrievalText(StrictModel):
    """A piece of text of a retrieval entry."""

    type: Literal["text"] = "text"
    text: str


class RetrievalEntry(StrictModel):
    """A passage that was found.

    Attributes:
        id: The passage.
        content: Its text.
        score: How well it fits, higher is better; comparable within one answer only.
        metadata: `document_id`, `document_name`, `position`, and what was stored with the document.
    """

    id: Identifier
    content: list[RetrievalText]
    score: float | None = None
    metadata: JsonObject = Field(default_factory=dict)


class RetrievalResult(StrictModel):
    """Passages, best first."""

    items: list[RetrievalEntry] = Field(default_factory=list)


class KnowledgeBaseInfo(StrictModel):
    """A knowledge base that the run may use."""

    kb_id: Identifier
    kb_name: str | None = None
    kb_type: str | None = None
    description: str | None = None


class KnowledgeBaseList(StrictModel):
    """The knowledge bases granted to this run with the operation `list`."""

    items: list[KnowledgeBaseInfo] = Field(default_factory=list)


# --- prompt, history, events, steering (PROTOCOL 9.4, 9.5) -------------------------------------------------


class Prompt(StrictModel):
    """The effective prompt of the entry; empty where there is none."""

    messages: list[Message] = Field(default_factory=list)


class HistoryPageParams(StrictModel):
    """A page of the transcript; `conversation_id` null means the run's own."""

    conversation_id: Identifier | None = None
    before_cursor: Cursor | None = None
    after_cursor: Cursor | None = None
    limit: PageLimit = 50
    direction: Literal["backward", "forward"] = "backward"
    include_artifacts: bool = False


class HistoryFilters(StrictModel):
    """Narrows a search (D-47); times are epoch seconds, `after` inclusive and `before` exclusive."""

    roles: list[str] | None = Field(default=None, max_length=20)
    item_types: list[str] | None = Field(default=None, max_length=20)
    event_types: list[str] | None = Field(default=None, max_length=100)
    after: EpochSeconds | None = None
    before: EpochSeconds | None = None


class HistorySearchParams(StrictModel):
    """A search in the run's own conversation and thread."""

    query: QueryText
    filters: HistoryFilters | None = None
    top_k: PageLimit = 10


class EventGetParams(StrictModel):
    """Names an event."""

    event_id: Identifier


class EventPageParams(StrictModel):
    """A page of the event log, newest first."""

    conversation_id: Identifier | None = None
    event_types: list[str] | None = Field(default=None, max_length=100)
    before_cursor: Cursor | None = None
    limit: PageLimit = 50


class SteeringPullParams(StrictModel):
    """Which of the claimed inputs to take; `one` and its two spellings take the oldest."""

    mode: Literal["all", "one", "one-at-a-time", "one_at_a_time"] = "all"
    limit: PageLimit | None = None


# --- artifacts (PROTOCOL 9.6) ------------------------------------------------------------------------------


class ArtifactParams(StrictModel):
    """Names an artifact."""

    artifact_id: Identifier


class ArtifactReadParams(StrictModel):
    """Bytes of an artifact from `offset`; no limit means 1 MiB, more than 10 MiB is capped."""

    artifact_id: Identifier
    offset: Count = 0
    limit: Annotated[int, Field(ge=1)] | None = None


class ArtifactReadRangeParams(StrictModel):
    """Bytes of an artifact from `offset`, 64 KiB unless told."""

    artifact_id: Identifier
    offset: Count = 0
    length: Annotated[int, Field(ge=1)] = DEFAULT_RANGE_BYTES


# --- state (PROTOCOL 9.7) ----------------------------------------------------------------------------------


class StateParams(StrictModel):
    """Names a value of host-owned state."""

    scope: StateScope
    key: StateKey


class StateSetParams(StrictModel):
    """A value to keep, at most 256 KiB as JSON."""

    scope: StateScope
    key: StateKey
    value: JsonValue


class StateListParams(StrictModel):
    """Keys of a scope, in order; more than 100 are capped."""

    scope: StateScope
    prefix: Annotated[str, StringConstraints(max_length=255)] | None = None
    limit: PageLimit = MAX_PAGE_ITEMS


class StateValue(StrictModel):
    """A value of state; null where there is none."""

    value: JsonValue = None


class Deleted(StrictModel):
    """Whether there was something to delete."""

    deleted: bool


class StateKeys(StrictModel):
    """Keys in order, and whether there are more."""

    keys: list[str] = Field(default_factory=list)
    has_more: bool = False


# --- storage and files (PROTOCOL 9.8, D-17) ----------------------------------------------------------------


class StorageParams(StrictModel):
    """Names a stored value."""

    key: Identifier


class StorageSetParams(StrictModel):
    """Bytes to keep, at most 10 MiB."""

    key: Identifier
    value_base64: str


class StorageValue(StrictModel):
    """Stored bytes; null where there are none."""

    value_base64: str | None = None


class StorageKeys(StrictModel):
    """All keys, in order."""

    keys: list[str] = Field(default_factory=list)


class FileParams(StrictModel):
    """Names a file."""

    file_key: Identifier


class FileContent(StrictModel):
    """A file with its bytes."""

    file_key: Identifier
    file_name: str | None = None
    mime_type: str | None = None
    size_bytes: Count
    content_base64: str


class HostVersion(StrictModel):
    """Version of the host (D-2)."""

    langbot_version: str


@dataclass(frozen=True, slots=True)
class HostMethod:
    """One method of the host API.

    Attributes:
        params: What it takes.
        returns: What it answers; of a stream, each of its events.
        is_stream: Whether it answers with a stream.
        max_request_bytes: Most that its parameters may hold as JSON.
    """

    params: type[StrictModel]
    returns: type[StrictModel]
    is_stream: bool = False
    max_request_bytes: int = MAX_REQUEST_BYTES


HOST_METHODS: Final[dict[str, HostMethod]] = {
    "invoke_llm": HostMethod(InvokeModelParams, ModelAnswer),
    "invoke_llm_with_usage": HostMethod(InvokeModelParams, ModelAnswer),
    "invoke_llm_stream": HostMethod(InvokeModelParams, ModelStreamEvent, is_stream=True),
    "invoke_llm_stream_events": HostMethod(InvokeModelParams, ModelStreamEvent, is_stream=True),
    "invoke_rerank": HostMethod(RerankParams, RerankResult),
    "count_tokens": HostMethod(CountTokensParams, TokenCount),
    "get_tool_detail": HostMethod(ToolParams, ToolDetail),
    "call_tool": HostMethod(CallToolParams, ToolResult),
    "list_knowledge_bases": HostMethod(NoParams, KnowledgeBaseList),
    "retrieve_knowledge": HostMethod(RetrieveParams, RetrievalResult),
    "get_prompt": HostMethod(NoParams, Prompt),
    "history_page": HostMethod(HistoryPageParams, HistoryPage),
    "history_search": HostMethod(HistorySearchParams, HistorySearchResult),
    "event_get": HostMethod(EventGetParams, AgentEventRecord),
    "event_page": HostMethod(EventPageParams, EventPage),
    "steering_pull": HostMethod(SteeringPullParams, SteeringPullResult),
    "artifact_metadata": HostMethod(ArtifactParams, ArtifactMetadata),
    "artifact_read": HostMethod(ArtifactReadParams, ArtifactReadResult),
    "artifact_read_range": HostMethod(ArtifactReadRangeParams, ArtifactReadResult),
    "state_get": HostMethod(StateParams, StateValue),
    "state_set": HostMethod(StateSetParams, Done),
    "state_delete": HostMethod(StateParams, Deleted),
    "state_list": HostMethod(StateListParams, StateKeys),
    "get_plugin_storage": HostMethod(StorageParams, StorageValue),
    "set_plugin_storage": HostMethod(StorageSetParams, Done, max_request_bytes=_VALUE_REQUEST_BYTES),
    "delete_plugin_storage": HostMethod(StorageParams, Deleted),
    "get_plugin_storage_keys": HostMethod(NoParams, StorageKeys),
    "get_workspace_storage": HostMethod(StorageParams, StorageValue),
    "set_workspace_storage": HostMethod(StorageSetParams, Done, max_request_bytes=_VALUE_REQUEST_BYTES),
    "delete_workspace_storage": HostMethod(StorageParams, Deleted),
    "get_workspace_storage_keys": HostMethod(NoParams, StorageKeys),
    "get_file": HostMethod(FileParams, FileContent),
    "get_langbot_version": HostMethod(NoParams, HostVersion),
}
"""Every method, by its name on the wire (D-6)."""
