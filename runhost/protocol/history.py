"""Pages of history and events as the host API returns them (PROTOCOL 9.4, 9.5, 9.10)."""

from pydantic import Field

from runhost.protocol.content import MessageRole
from runhost.protocol.identifiers import Identifier
from runhost.protocol.json import Count, EpochSeconds, JsonObject, StrictModel


class TranscriptItem(StrictModel):
    """One item of a conversation as people see it.

    Attributes:
        transcript_id: Id of the item.
        event_id: Event that it stems from.
        conversation_id: Conversation.
        thread_id: Thread.
        role: Who speaks.
        item_type: `message`, `tool_call`, `tool_result` or `system`.
        content: Text, cut at 4,000 characters.
        content_json: The whole structured message.
        artifact_refs: References, only when asked for.
        seq: Position in the transcript.
        created_at: When it was written.
        cursor: Opaque position for paging.
        metadata: Anything else.
    """

    transcript_id: Identifier
    event_id: Identifier
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    role: MessageRole
    item_type: str = Field(default="message", max_length=50)
    content: str | None = None
    content_json: JsonObject | None = None
    artifact_refs: list[JsonObject] = Field(default_factory=list)
    seq: Count | None = None
    created_at: EpochSeconds | None = None
    cursor: str | None = None
    metadata: JsonObject = Field(default_factory=dict)


class HistoryPage(StrictModel):
    """A page of the transcript; cursors are opaque (D-46)."""

    items: list[TranscriptItem] = Field(default_factory=list)
    next_cursor: str | None = None
    prev_cursor: str | None = None
    has_more: bool = False
    total_count: Count | None = None


class HistorySearchResult(StrictModel):
    """What a search in the transcript found."""

    items: list[TranscriptItem] = Field(default_factory=list)
    total_count: Count | None = None
    query: str


class AgentEventRecord(StrictModel):
    """A logged event; `input_summary` is at most 1,000 characters, `raw_ref` the id of a stored payload."""

    event_id: Identifier
    event_type: str = Field(max_length=100)
    source: str = Field(max_length=50)
    event_time: EpochSeconds | None = None
    seq: Count | None = None
    created_at: EpochSeconds | None = None
    bot_id: Identifier | None = None
    workspace_id: Identifier | None = None
    conversation_id: Identifier | None = None
    thread_id: Identifier | None = None
    actor_type: str | None = None
    actor_id: str | None = None
    actor_name: str | None = None
    subject_type: str | None = None
    subject_id: str | None = None
    input_summary: str | None = Field(default=None, max_length=1_000)
    input_ref: str | None = None
    raw_ref: str | None = None
    cursor: str | None = None
    metadata: JsonObject = Field(default_factory=dict)


class EventPage(StrictModel):
    """A page of events; cursors are opaque (D-46)."""

    items: list[AgentEventRecord] = Field(default_factory=list)
    next_cursor: str | None = None
    prev_cursor: str | None = None
    has_more: bool = False
    total_count: Count | None = None
