"""A host for one run that notes every call: it grants what the context says, and answers as it is told."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from typing import Final

from pydantic import ValidationError

from runhost.protocol import (
    AgentAPIError,
    AgentAPIException,
    AgentResources,
    AgentRunContext,
    ErrorCode,
    JsonObject,
    StrictModel,
    describe_validation,
)
from runhost.protocol.host_api import HOST_METHODS, InvokeModelParams
from runners.conformance.answers import Answers, NoAnswer
from runners.conformance.reading import json_size
from runners.conformance.scenario import HostManner, Scenario

MAX_NOTED_FAULTS: Final = 10

_RETRYABLE: Final = frozenset({ErrorCode.RATE_LIMITED, ErrorCode.RUNTIME_ERROR})

# Which resource a method needs: kind, parameter with its id, operations of which one is enough (PROTOCOL 9).
_GRANTS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "invoke_llm": ("models", "llm_model_uuid", ("invoke",)),
    "invoke_llm_with_usage": ("models", "llm_model_uuid", ("invoke",)),
    "invoke_llm_stream": ("models", "llm_model_uuid", ("stream",)),
    "invoke_llm_stream_events": ("models", "llm_model_uuid", ("stream",)),
    "invoke_rerank": ("models", "rerank_model_id", ("rerank",)),
    "count_tokens": ("models", "llm_model_uuid", ("invoke", "stream")),
    "get_tool_detail": ("tools", "tool_name", ("detail",)),
    "call_tool": ("tools", "tool_name", ("call",)),
    "retrieve_knowledge": ("knowledge_bases", "kb_id", ("retrieve",)),
    "get_file": ("files", "file_key", ("config", "knowledge")),
}

# Which flag of `ctx.context.available_apis` a method needs.
_FLAGS: Final[dict[str, str]] = {
    "get_prompt": "prompt_get",
    "history_page": "history_page",
    "history_search": "history_search",
    "event_get": "event_get",
    "event_page": "event_page",
    "steering_pull": "steering_pull",
    "artifact_metadata": "artifact_metadata",
    "artifact_read": "artifact_read",
    "artifact_read_range": "artifact_read",
    **dict.fromkeys(("state_get", "state_set", "state_delete", "state_list"), "state"),
    **dict.fromkeys((method for method in HOST_METHODS if "_storage" in method), "storage"),
}


class RecordingHost:
    """A `HostConnection` for one run.

    Args:
        context: What the run was given, and so what it may call.
        scenario: How calls are met.
        called: Told at each call.

    Attributes:
        calls: Calls made, right or wrong.
        faults: What was wrong with them by the protocol, at most ten; refusals that the scenario asks for are not.
    """

    def __init__(self, context: AgentRunContext, scenario: Scenario, called: Callable[[], None]) -> None:
        self.calls = 0
        self.faults: list[str] = []
        self._context = context
        self._scenario = scenario
        self._called = called
        self._answers = Answers(context, scenario.host)

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a call; see `HostConnection`."""
        parsed = await self._admit(method, params, is_stream=False)
        try:
            return self._answers.answer(method, parsed).model_dump(mode="json")
        except NoAnswer as error:
            raise AgentAPIException(error.error) from None

    async def stream(self, method: str, params: JsonObject) -> AsyncGenerator[JsonObject]:
        """Answer a streaming call; see `HostConnection`."""
        parsed = await self._admit(method, params, is_stream=True)
        if isinstance(parsed, InvokeModelParams):
            for event in self._answers.stream(parsed):
                yield event.model_dump(mode="json", exclude_none=True)

    async def _admit(self, method: str, params: JsonObject, *, is_stream: bool) -> StrictModel:
        """Check a call as the real gate does, and meet it in the scenario's manner."""
        self.calls += 1
        self._called()
        declared = HOST_METHODS.get(method)
        if declared is None or declared.is_stream != is_stream:
            raise self._fault(ErrorCode.INVALID_ARGUMENT, f"{method!r:.80}: there is no such method")
        if (size := json_size(params)) > declared.max_request_bytes:
            raise _refusal(
                ErrorCode.PAYLOAD_TOO_LARGE, f"{method}: {size} bytes of JSON, of at most {declared.max_request_bytes}"
            )
        try:
            parsed = declared.params.model_validate(params)
        except ValidationError as error:
            raise self._fault(ErrorCode.INVALID_ARGUMENT, f"{method}: {describe_validation(error)}") from None
        self._check_grant(method, parsed)
        if self._scenario.host is HostManner.REFUSES:
            code = self._scenario.refusal
            raise _refusal(code, "The conformance kit refuses every call in this scenario.")
        if self._scenario.host is HostManner.HANGS:
            await self._hang()
        return parsed

    def _check_grant(self, method: str, params: StrictModel) -> None:
        if (grant := _GRANTS.get(method)) is not None:
            kind, field, operations = grant
            if not _is_granted(self._context.resources, kind, str(getattr(params, field)), operations):
                wanted = " or ".join(operations)
                raise self._fault(ErrorCode.UNAUTHORIZED, f"{method}: {field}: not granted with {wanted}")
        if (flag := _FLAGS.get(method)) is not None and not self._is_open(method, flag):
            raise self._fault(ErrorCode.UNAUTHORIZED, f"{method}: {flag} is not open to this run")
        asked = getattr(params, "conversation_id", None)
        if asked is not None and asked != self._context.context.conversation_id:
            raise self._fault(ErrorCode.UNAUTHORIZED, f"{method}: conversation_id: not the run's own")

    def _is_open(self, method: str, flag: str) -> bool:
        storage = self._context.resources.storage
        if "workspace_storage" in method and not storage.workspace_storage:
            return False
        if "plugin_storage" in method and not storage.plugin_storage:
            return False
        return bool(getattr(self._context.context.available_apis, flag))

    async def _hang(self) -> None:
        deadline_at = self._context.runtime.deadline_at
        if deadline_at is None:
            await asyncio.Event().wait()
            return
        await asyncio.sleep(max(0.0, deadline_at - time.time()))
        raise _refusal(ErrorCode.DEADLINE_EXCEEDED, "The run's deadline has passed.")

    def _fault(self, code: ErrorCode, message: str) -> AgentAPIException:
        if len(self.faults) < MAX_NOTED_FAULTS:
            self.faults.append(message)
        return _refusal(code, message)


def _is_granted(resources: AgentResources, kind: str, resource_id: str, operations: tuple[str, ...]) -> bool:
    granted = {
        "models": {model.model_id: model.allows for model in resources.models},
        "tools": {tool.tool_name: tool.allows for tool in resources.tools},
        "knowledge_bases": {base.kb_id: base.allows for base in resources.knowledge_bases},
        "files": {file.file_id: file.allows for file in resources.files},
    }
    allows = granted[kind].get(resource_id)
    return allows is not None and any(allows(operation) for operation in operations)


def _refusal(code: ErrorCode, message: str) -> AgentAPIException:
    return AgentAPIException(AgentAPIError(code=code.value, message=message, retryable=code in _RETRYABLE))
