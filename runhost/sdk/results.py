"""Builds the results that a runner yields (PROTOCOL 7).

Each function checks what it is given and raises `pydantic.ValidationError`, so that a mistake shows where it
is made and not as a rejected row in the ledger. Sizes are checked by the host: a result may have 2 MiB, a state
value 256 KiB, the content of an artifact 1 MiB.
"""

import base64
import time

from runhost.protocol import (
    ActionRequestedData,
    AgentRunContext,
    AgentRunResult,
    ArtifactCreatedData,
    ChunkMode,
    JsonObject,
    JsonValue,
    LenientModel,
    Message,
    MessageChunk,
    MessageCompletedData,
    MessageDeltaData,
    ResultType,
    RunCompletedData,
    RunFailedData,
    RunFailureCode,
    StateScope,
    StateUpdatedData,
    StrictModel,
    ToolCallCompletedData,
    ToolCallStartedData,
    Usage,
)


def delta(
    ctx: AgentRunContext,
    text: str,
    *,
    message_index: int = 0,
    mode: ChunkMode = "append",
    usage: Usage | None = None,
) -> AgentRunResult:
    """Stream a piece of an assistant message.

    Args:
        ctx: context of the run.
        text: the piece, with `mode="replace"` the whole text so far (D-26).
        message_index: which message of the run it belongs to, from 0 (D-55).
        mode: what to do with the text.
        usage: tokens that the host does not know of yet; it adds up what all results report (D-32).
    """
    chunk = MessageChunk(role="assistant", content=text, mode=mode, message_index=message_index)
    return chunk_result(ctx, chunk, usage=usage)


def chunk_result(ctx: AgentRunContext, chunk: MessageChunk, *, usage: Usage | None = None) -> AgentRunResult:
    """Stream a chunk that needs more than text, such as fragments of tool calls."""
    return _result(ctx, ResultType.MESSAGE_DELTA, MessageDeltaData(chunk=chunk), usage)


def message(ctx: AgentRunContext, content: str | Message, *, usage: Usage | None = None) -> AgentRunResult:
    """Complete a message: text for the assistant, or a whole `Message`.

    It is delivered and becomes a transcript item. After deltas it is needed only when it differs from what
    they add up to, or when more than one message is streamed (D-25).
    """
    return _result(ctx, ResultType.MESSAGE_COMPLETED, MessageCompletedData(message=_message(content)), usage)


def completed(
    ctx: AgentRunContext,
    finish_reason: str = "stop",
    *,
    message: str | Message | None = None,
    usage: Usage | None = None,
) -> AgentRunResult:
    """End the run well, with a last message if there is one that was not completed before."""
    data = RunCompletedData(finish_reason=finish_reason)
    if message is not None:
        data = RunCompletedData(finish_reason=finish_reason, message=_message(message))
    return _result(ctx, ResultType.RUN_COMPLETED, data, usage)


def failed(
    ctx: AgentRunContext, code: str, error: str, *, retryable: bool = False, usage: Usage | None = None
) -> AgentRunResult:
    """End the run without success.

    Args:
        ctx: context of the run.
        code: a dotted name of at most 100 characters that programs can act on; see `RunFailureCode`.
        error: what went wrong, for people; no secrets.
        retryable: whether trying the whole run again may help; nothing is retried for it alone (P-S8).
        usage: as for `delta`.
    """
    # The plain text of an enum member, so that the ledger holds JSON and nothing else.
    data = RunFailedData(code=str(code), error=error, retryable=retryable)
    return _result(ctx, ResultType.RUN_FAILED, data, usage)


def cancelled(ctx: AgentRunContext, error: str = "the run was cancelled") -> AgentRunResult:
    """End the run after `asyncio.CancelledError` (P-T4)."""
    return failed(ctx, RunFailureCode.CANCELLED, error)


def state(ctx: AgentRunContext, scope: StateScope, key: str, value: JsonValue) -> AgentRunResult:
    """Store a value in host-owned state, where the next run of the same scope finds it in `ctx.state`."""
    return _result(ctx, ResultType.STATE_UPDATED, StateUpdatedData(scope=scope, key=key, value=value))


def artifact(
    ctx: AgentRunContext,
    artifact_type: str,
    content: bytes | None = None,
    *,
    name: str | None = None,
    mime_type: str | None = None,
    artifact_id: str | None = None,
    metadata: JsonObject | None = None,
) -> AgentRunResult:
    """Register an artifact.

    Args:
        ctx: context of the run.
        artifact_type: `image`, `file`, `voice`, `tool_result` or a name of your own.
        content: at most 1 MiB; None when the content is kept elsewhere.
        name: file name for display.
        mime_type: media type.
        artifact_id: id to register it under, for messages that refer to it; the host makes one otherwise.
        metadata: anything else that may be public.
    """
    optional = {"artifact_id": artifact_id, "mime_type": mime_type, "name": name, "metadata": metadata}
    fields: dict[str, object] = {key: value for key, value in optional.items() if value is not None}
    if content is not None:
        fields["size_bytes"] = len(content)
        fields["content_base64"] = base64.b64encode(content).decode("ascii")
    data = ArtifactCreatedData.model_validate({"artifact_type": artifact_type, **fields})
    return _result(ctx, ResultType.ARTIFACT_CREATED, data)


def tool_started(ctx: AgentRunContext, tool_call_id: str, tool_name: str, parameters: JsonObject) -> AgentRunResult:
    """Report that a tool is being called; the result pairs with it by `tool_call_id`."""
    data = ToolCallStartedData(tool_call_id=tool_call_id, tool_name=tool_name, parameters=parameters)
    return _result(ctx, ResultType.TOOL_CALL_STARTED, data)


def tool_completed(
    ctx: AgentRunContext,
    tool_call_id: str,
    tool_name: str,
    *,
    result: JsonObject | None = None,
    error: str | None = None,
) -> AgentRunResult:
    """Report what became of a tool call: its result, or its error."""
    data = ToolCallCompletedData(tool_call_id=tool_call_id, tool_name=tool_name, result=result, error=error)
    return _result(ctx, ResultType.TOOL_CALL_COMPLETED, data)


def action(
    ctx: AgentRunContext, action: str, *, target: JsonObject | None = None, payload: JsonObject | None = None
) -> AgentRunResult:
    """Ask for something to be done on the platform, such as `message.edit`; the host decides if it is."""
    data = ActionRequestedData(action=action, target=target, payload=payload)
    return _result(ctx, ResultType.ACTION_REQUESTED, data)


def _message(content: str | Message) -> Message:
    return content if isinstance(content, Message) else Message(role="assistant", content=content)


def _result(
    ctx: AgentRunContext, kind: ResultType, data: StrictModel | LenientModel, usage: Usage | None = None
) -> AgentRunResult:
    # Everything in it has been checked by now, and the host checks it again: a second check here would double
    # the cost of a delta.
    return AgentRunResult.model_construct(
        run_id=ctx.run_id,
        type=kind.value,
        # Only what was set: a `message` that is present but null would be a protocol error (P-V11).
        data=data.model_dump(exclude_unset=True),
        timestamp=int(time.time()),
        usage=usage,
    )
