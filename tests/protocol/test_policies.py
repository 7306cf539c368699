from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from runhost.protocol import (
    BINDING_SCOPE_ORDER,
    AgentBinding,
    AgentConfig,
    BindingScope,
    EventFilter,
    OnBusy,
    ResourcePolicy,
    StatePolicy,
    UnknownFields,
)

CONFIG = {"runner_id": "plugin:a/b/c"}


def test_agent_config_has_the_documented_defaults() -> None:
    config = AgentConfig.model_validate(CONFIG)

    assert config.event_types == ["message.received"]
    assert config.enabled
    assert config.state_policy.state_scopes == ["conversation", "actor"]
    assert config.delivery_policy.enable_streaming
    assert config.resource_policy == ResourcePolicy()


def test_resource_policy_adds_nothing_and_hides_nothing_by_default() -> None:
    policy = ResourcePolicy()

    assert policy.allowed_model_uuids is None
    assert policy.denied_tool_names == []
    assert policy.allow_plugin_storage
    assert not policy.allow_workspace_storage
    assert policy.allow_history
    assert policy.allow_events
    assert policy.allow_artifacts


def test_stored_config_of_a_newer_host_is_readable() -> None:
    config = AgentConfig.model_validate(CONFIG | {"state_policy": {"ttl": 3}, "lanes": 2})

    assert config.state_policy == StatePolicy()


def test_posted_config_names_the_unknown_field_at_any_depth() -> None:
    posted: TypeAdapter[AgentConfig] = TypeAdapter(Annotated[AgentConfig, UnknownFields("forbid")])

    with pytest.raises(ValidationError) as caught:
        posted.validate_python(CONFIG | {"state_policy": {"ttl": 3}})
    assert caught.value.errors()[0]["loc"] == ("state_policy", "ttl")


def test_binding_is_global_to_its_agent_by_default() -> None:
    binding = AgentBinding.model_validate(CONFIG | {"binding_id": "agent_x"})

    assert binding.scope == BindingScope(scope_type="agent")
    assert binding.filters == []
    assert binding.priority == 0


@pytest.mark.parametrize("scope_type", BINDING_SCOPE_ORDER)
def test_scope_needs_an_id_except_global(scope_type: str) -> None:
    assert BindingScope.model_validate({"scope_type": scope_type, "scope_id": "x"}).scope_id == "x"
    if scope_type == "global":
        BindingScope.model_validate({"scope_type": scope_type})
    else:
        with pytest.raises(ValidationError, match=f"Scope {scope_type} needs scope_id"):
            BindingScope.model_validate({"scope_type": scope_type})


@pytest.mark.parametrize(
    "condition",
    [
        {"field": "data.channel", "op": "eq", "value": 7},
        {"field": "actor.actor_id", "op": "ne", "value": None},
        {"field": "bot_id", "op": "in", "value": ["a", "b"]},
        {"field": "input.text", "op": "prefix", "value": "/"},
        {"field": "thread_id", "op": "exists", "value": True},
        {"field": "input.text", "op": "matches", "value": "^/ask"},
    ],
    ids=lambda condition: condition["op"],
)
def test_filter_takes_a_fitting_value(condition: dict[str, object]) -> None:
    assert EventFilter.model_validate(condition).model_dump() == condition


@pytest.mark.parametrize(
    "condition",
    [
        {"field": "bot_id", "op": "in", "value": "a"},
        {"field": "bot_id", "op": "exists", "value": "yes"},
        {"field": "bot_id", "op": "prefix"},
        {"field": "bot_id", "op": "matches", "value": 1},
        {"field": "bot_id", "op": "regex", "value": "a"},
        {"field": "data..x", "op": "eq", "value": "a"},
        {"field": "__import__('os')", "op": "eq", "value": "a"},
    ],
)
def test_other_filter_is_refused(condition: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EventFilter.model_validate(condition)


def test_on_busy_has_the_five_ways() -> None:
    assert set(OnBusy) == {"steer", "enqueue", "parallel", "interrupt", "reject"}
