"""Builds the contexts that runners are given, as a host would for a run with everything that they ask for."""

import time
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

from runhost.protocol import (
    ActorContext,
    AgentEventContext,
    AgentInput,
    AgentResources,
    AgentRunContext,
    AgentRunnerPermissions,
    AgentRunState,
    AgentRuntimeContext,
    AgentTrigger,
    ContentElement,
    ContextAccess,
    ContextAPICapabilities,
    ConversationContext,
    DeliveryContext,
    FileResource,
    InlineContextPolicy,
    JsonObject,
    JsonValue,
    KnowledgeBaseResource,
    ModelResource,
    StorageResource,
    SubjectContext,
    ToolResource,
)
from runners.conformance.scenario import ConfigChoice, Scenario
from runners.conformance.target import Target

MODEL: Final = "conformance-model"
RERANK_MODEL: Final = "conformance-rerank-model"
TOOL: Final = "conformance_tool"
KNOWLEDGE_BASE: Final = "conformance-base"
FILE: Final = "conformance-file"
FILE_NAME: Final = "conformance.txt"
WORKSPACE: Final = "conformance"

# What a form's selector of each kind gets where the configuration leaves it out (HOST 6.2).
_SELECTED: Final[dict[str, JsonValue]] = {
    "model-fallback-selector": {"primary": MODEL, "fallbacks": []},
    "llm-model-selector": MODEL,
    "select-llm-model": MODEL,
    "rerank-model-selector": RERANK_MODEL,
    "knowledge-base-multi-selector": [KNOWLEDGE_BASE],
    "select-knowledge-bases": [KNOWLEDGE_BASE],
    "file": {"file_key": FILE, "file_name": FILE_NAME, "mime_type": "text/plain"},
    "array[file]": [{"file_key": FILE, "file_name": FILE_NAME, "mime_type": "text/plain"}],
}
_UNKNOWN: Final[JsonObject] = {"sent_by": "a newer host", "list": [1, None, {"deep": True}]}


class _NewerInput(AgentInput):
    from_the_future: JsonObject = _UNKNOWN


class _NewerEvent(AgentEventContext):
    from_the_future: JsonObject = _UNKNOWN


class _NewerContext(AgentRunContext):
    """A context with fields that nobody knows, as a newer host may send it (P-V9, P-E2)."""

    input: _NewerInput  # pyright: ignore[reportIncompatibleVariableOverride]
    event: _NewerEvent  # pyright: ignore[reportIncompatibleVariableOverride]
    from_the_future: JsonObject = _UNKNOWN


def build_context(target: Target, scenario: Scenario, number: int) -> AgentRunContext:
    """Build the context of run `number` of a scenario, with a run id of its own."""
    run_id = str(uuid4())
    conversation_id = f"conformance-{run_id}"
    text = scenario.text_of(number)
    permissions = target.descriptor.permissions
    deadline_at = None
    if scenario.deadline_seconds is not None:
        deadline_at = time.time() + target.start_seconds + scenario.deadline_seconds
    context = AgentRunContext(
        run_id=run_id,
        trigger=AgentTrigger(type=scenario.event_type, source="api", timestamp=int(time.time())),
        event=AgentEventContext(
            event_id=f"conformance-{scenario.name}-{number}",
            event_type=scenario.event_type,
            event_time=int(time.time()),
            source="api",
        ),
        conversation=ConversationContext(conversation_id=conversation_id, workspace_id=WORKSPACE),
        actor=ActorContext(actor_type="user", actor_id="conformance-user", actor_name="Conformance"),
        subject=SubjectContext(subject_type="message", subject_id=f"message-{run_id}"),
        input=AgentInput(text=text, contents=[ContentElement(type="text", text=text)] if text else []),
        delivery=DeliveryContext(surface="conformance", supports_streaming=True),
        resources=_grant(permissions),
        context=ContextAccess(
            conversation_id=conversation_id,
            has_history_before=True,
            inline_policy=InlineContextPolicy(mode="current_event", delivered_count=1),
            available_apis=_open_apis(permissions, can_steer=target.descriptor.capabilities.steering),
        ),
        state=AgentRunState(),
        runtime=AgentRuntimeContext(
            langbot_version="conformance",
            trace_id=run_id,
            deadline_at=deadline_at,
            metadata={"workspace_id": WORKSPACE, "streaming_supported": True},
        ),
        config=_config(target, scenario.config),
    )
    return _as_newer(context) if scenario.is_newer else context


def _as_newer(context: AgentRunContext) -> AgentRunContext:
    parts = {"input": _NewerInput(**dict(context.input)), "event": _NewerEvent(**dict(context.event))}
    return _NewerContext(**(dict(context) | parts))


def _grant(permissions: AgentRunnerPermissions) -> AgentResources:
    """Grant one resource of every kind that the manifest asks for, with all operations that it asks for."""
    resources: dict[str, object] = {}
    language = [operation for operation in permissions.models if operation != "rerank"]
    models = [ModelResource(model_id=MODEL, model_type="llm", operations=[*language])] if language else []
    if "rerank" in permissions.models:
        models.append(ModelResource(model_id=RERANK_MODEL, model_type="rerank", operations=["rerank"]))
    if permissions.tools:
        resources["tools"] = [ToolResource(tool_name=TOOL, description="Answers.", operations=[*permissions.tools])]
    if permissions.knowledge_bases:
        operations: list[str] = [*permissions.knowledge_bases]
        resources["knowledge_bases"] = [KnowledgeBaseResource(kb_id=KNOWLEDGE_BASE, operations=operations)]
    if permissions.files:
        resources["files"] = [FileResource(file_id=FILE, file_name=FILE_NAME, operations=[*permissions.files])]
    storage = StorageResource(
        plugin_storage="plugin" in permissions.storage, workspace_storage="workspace" in permissions.storage
    )
    return AgentResources.model_validate({"models": models, "storage": storage, **resources})


def _open_apis(permissions: AgentRunnerPermissions, *, can_steer: bool) -> ContextAPICapabilities:
    return ContextAPICapabilities(
        prompt_get=True,
        history_page="page" in permissions.history,
        history_search="search" in permissions.history,
        event_get="get" in permissions.events,
        event_page="page" in permissions.events,
        artifact_metadata="metadata" in permissions.artifacts,
        artifact_read="read" in permissions.artifacts,
        state=True,
        storage=bool(permissions.storage),
        steering_pull=can_steer,
    )


def _config(target: Target, choice: ConfigChoice) -> JsonObject:
    names = [name for name, _ in _items(target)]
    match choice:
        case ConfigChoice.GIVEN:
            selected = {name: _SELECTED[kind] for name, kind in _items(target) if kind in _SELECTED}
            return selected | target.config
        case ConfigChoice.EMPTY:
            return {}
        case ConfigChoice.OBJECTS:
            return {name: {"no": ["such", "value"]} for name in (*names, "conformance")}
        case ConfigChoice.NUMBERS:
            return dict.fromkeys([*names, "conformance"], -1)


def _items(target: Target) -> Iterator[tuple[str, str]]:
    for item in target.descriptor.config_schema:
        name, kind = item.get("name"), item.get("type")
        if isinstance(name, str) and isinstance(kind, str):
            yield name, kind
