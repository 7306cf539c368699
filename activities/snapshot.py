"""What a run may reach and what it starts from, built once and frozen into its row (D-15, HOST 7 and 8)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from activities.available_apis import available_apis
from activities.resources import ResourceRequest, context_window_tokens
from activities.state_scopes import StateScopes
from runhost.protocol import (
    AdapterContext,
    AgentConfig,
    AgentEventContext,
    AgentResources,
    AgentRunContext,
    AgentRunnerDescriptor,
    AgentRunState,
    AgentRuntimeContext,
    AgentTrigger,
    ContextAccess,
    ContextAPICapabilities,
    ConversationContext,
    InlineContextPolicy,
    JsonObject,
    RunnerId,
)
from stores.catalog import Catalog
from stores.runs import RunRow

DEFAULT_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class Grants:
    """What a run may reach: the same in what is checked and in what its runner is told.

    Attributes:
        document: The resources as JSON, as they are stored.
        context_window_tokens: Of the first model that is granted for writing; None where it is unknown.
    """

    document: JsonObject
    resources: AgentResources
    available_apis: ContextAPICapabilities
    context_window_tokens: int | None


def build_grants(
    run: RunRow, config: AgentConfig, descriptor: AgentRunnerDescriptor, request: ResourceRequest, catalog: Catalog
) -> Grants:
    """Return what a run may reach (HOST 6). ``catalog`` answers ``request``, which is the run's agent's."""
    document = request.build(catalog)
    resources = AgentResources.model_validate(document)
    apis = available_apis(
        descriptor.permissions,
        descriptor.capabilities,
        config,
        resources,
        has_conversation=run.conversation_id is not None,
    )
    return Grants(document, resources, apis, context_window_tokens(resources, catalog))


def deadline_for(runner_config: JsonObject, now: datetime) -> datetime | None:
    """Return when a run that starts ``now`` times out (H-C2).

    The seconds of ``timeout``, 300 where there is none; null, zero, negative and anything that is no number
    mean no deadline.
    """
    timeout = runner_config.get("timeout", DEFAULT_TIMEOUT_SECONDS)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        return None
    try:
        return now + timedelta(seconds=timeout)
    except OverflowError:
        return None


def build_authorization(
    run: RunRow, config: AgentConfig, descriptor: AgentRunnerDescriptor, scopes: StateScopes, grants: Grants
) -> JsonObject:
    """Return the snapshot of HOST 8.2. Every later check reads it and nothing else (INV-10)."""
    return {
        "runner_id": descriptor.id,
        "plugin_identity": RunnerId.parse(descriptor.id).plugin_id,
        "resources": grants.document,
        "available_apis": grants.available_apis.model_dump(mode="json"),
        "workspace_id": run.workspace_id,
        "bot_id": run.bot_id,
        "conversation_id": run.conversation_id,
        "thread_id": run.thread_id,
        "state_policy": config.state_policy.model_dump(mode="json"),
        "state_context": {"scope_keys": dict(scopes.keys), "binding_identity": scopes.binding_identity},
    }


def build_context(
    run: RunRow,
    config: AgentConfig,
    grants: Grants,
    *,
    state: dict[str, JsonObject],
    latest_cursor: str | None,
    deadline_at: datetime | None,
    host_version: str,
    now: datetime,
) -> AgentRunContext:
    """Return what the runner is given: the current event, never a history (H-C8, PROTOCOL 5)."""
    envelope = run.envelope
    actor = envelope.actor
    return AgentRunContext(
        run_id=str(run.run_id),
        trigger=AgentTrigger(
            type=envelope.event_type,
            source=envelope.source,
            timestamp=envelope.event_time or int(now.timestamp()),
        ),
        event=AgentEventContext(
            event_id=envelope.event_id,
            event_type=envelope.event_type,
            event_time=envelope.event_time,
            source=envelope.source,
            source_event_type=envelope.source_event_type,
            raw_ref=envelope.raw_ref,
            data=envelope.data,
        ),
        conversation=_conversation(run),
        actor=actor.model_copy(update={"metadata": {}}) if actor else None,
        subject=envelope.subject,
        input=envelope.input,
        delivery=envelope.delivery,
        resources=grants.resources,
        context=ContextAccess(
            conversation_id=run.conversation_id,
            thread_id=run.thread_id,
            latest_cursor=latest_cursor,
            has_history_before=latest_cursor is not None,
            inline_policy=InlineContextPolicy(mode="current_event", reason="current_event_only"),
            available_apis=grants.available_apis,
        ),
        state=AgentRunState.model_validate(state),
        runtime=AgentRuntimeContext(
            langbot_version=host_version,
            trace_id=str(run.run_id),
            deadline_at=deadline_at.timestamp() if deadline_at else None,
            metadata={
                "bot_id": run.bot_id,
                "workspace_id": run.workspace_id,
                "streaming_supported": envelope.delivery.supports_streaming,
                "model_context_window_tokens": grants.context_window_tokens,
            },
        ),
        config=config.runner_config,
        adapter=AdapterContext(),
    )


def _conversation(run: RunRow) -> ConversationContext | None:
    if run.conversation_id is None:
        return None
    actor = run.envelope.actor
    return ConversationContext(
        conversation_id=run.conversation_id,
        thread_id=run.thread_id,
        sender_id=actor.actor_id if actor else None,
        bot_id=run.bot_id,
        workspace_id=run.workspace_id,
    )
