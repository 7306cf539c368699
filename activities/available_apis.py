"""Which pull APIs a run may use (PROTOCOL 5.8, D-11)."""

from runhost.protocol import (
    AgentConfig,
    AgentResources,
    AgentRunnerCapabilities,
    AgentRunnerPermissions,
    ContextAPICapabilities,
)


def available_apis(
    permissions: AgentRunnerPermissions,
    capabilities: AgentRunnerCapabilities,
    config: AgentConfig,
    resources: AgentResources,
    *,
    has_conversation: bool,
) -> ContextAPICapabilities:
    """Return the flags of a run.

    Args:
        permissions: What the runner asks for.
        capabilities: Whether it takes steering input.
        config: The agent's policies: what they do not allow is off, whatever the runner asks for.
        resources: What the run is granted; storage is one of its parts.
        has_conversation: Whether the event names a conversation, which is all that pages can show.
    """
    policy, state = config.resource_policy, config.state_policy
    history, events, artifacts = permissions.history, permissions.events, permissions.artifacts
    return ContextAPICapabilities(
        # Cached prompts are of entries that we do not have; static ones are in the config (PROTOCOL 5.11).
        prompt_get=False,
        history_page="page" in history and policy.allow_history and has_conversation,
        history_search="search" in history and policy.allow_history and has_conversation,
        event_get="get" in events and policy.allow_events,
        event_page="page" in events and policy.allow_events and has_conversation,
        artifact_metadata="metadata" in artifacts and policy.allow_artifacts,
        artifact_read="read" in artifacts and policy.allow_artifacts,
        state=state.enable_state and bool(state.state_scopes),
        storage=resources.storage.plugin_storage or resources.storage.workspace_storage,
        steering_pull=capabilities.steering and has_conversation,
    )
