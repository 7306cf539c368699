from typing import Any

import pytest
from pydantic import ValidationError

from runhost.protocol import (
    AgentRunnerDescriptor,
    AgentRunnerDiscovery,
    AgentRunnerManifest,
    DynamicFormItemSchema,
    InvalidRunnerId,
    RunnerAddressMismatch,
)

ADDRESS = {"plugin_author": "runhost", "plugin_name": "scripted", "runner_name": "default"}
MANIFEST: dict[str, Any] = {
    "id": "plugin:runhost/scripted/default",
    "name": "default",
    "label": {"en_US": "Scripted", "zh_Hans": "脚本"},
    "capabilities": {"streaming": True},
    "permissions": {"tools": ["call"]},
    "config_schema": [{"name": "steps", "type": "json", "show_if": {"field": "kind"}}],
}


def discovery(**changes: object) -> AgentRunnerDiscovery:
    return AgentRunnerDiscovery.model_validate({**ADDRESS, "manifest": MANIFEST, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol_version": 1},
        {"capabilities": {"platform_api": True}},
        {"permissions": {"platform_api": ["send"]}},
        {"permissions": {"storage": ["binding"]}},
        {"label": {}},
    ],
    ids=["field", "capability", "permission", "operation", "label"],
)
def test_manifest_refuses_what_it_does_not_know(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AgentRunnerManifest.model_validate(MANIFEST | changes)


def test_manifest_grants_nothing_by_default() -> None:
    manifest = AgentRunnerManifest.model_validate({k: MANIFEST[k] for k in ("id", "name", "label")})

    assert not any(manifest.capabilities.model_dump().values())
    assert not any(manifest.permissions.model_dump().values())


def test_form_item_keeps_hints_we_do_not_know() -> None:
    item = {"name": "model", "type": "llm-model-selector", "default": "", "options": [{"name": "a"}]}

    assert DynamicFormItemSchema.model_validate(item).model_dump(exclude_unset=True) == item


def test_form_item_hints_are_json() -> None:
    with pytest.raises(ValidationError):
        DynamicFormItemSchema.model_validate({"type": "x", "hint": object()})


def test_discovery_repeats_the_manifest_for_old_readers() -> None:
    found = discovery()

    assert found.capabilities == found.manifest.capabilities
    assert found.permissions == found.manifest.permissions
    assert discovery(manifest=found.manifest).permissions.tools == ["call"]


def test_discovery_tolerates_fields_of_newer_runtimes() -> None:
    assert discovery(health="ok").plugin_name == "scripted"


def test_descriptor_takes_over_what_was_discovered() -> None:
    descriptor = AgentRunnerDescriptor.from_discovery(discovery(plugin_version="1.2"))

    assert descriptor.id == descriptor.runner_id == MANIFEST["id"]
    assert descriptor.plugin_id == "runhost/scripted"
    assert descriptor.source == "plugin"
    assert descriptor.label["zh_Hans"] == "脚本"
    assert descriptor.plugin_version == "1.2"
    assert descriptor.config_schema == MANIFEST["config_schema"]
    assert descriptor.capabilities.streaming
    assert descriptor.permissions.tools == ["call"]
    assert descriptor.raw_manifest == MANIFEST
    assert AgentRunnerDescriptor.model_validate(descriptor.model_dump(mode="json")) == descriptor


def test_form_of_the_discovery_goes_before_the_manifests() -> None:
    descriptor = AgentRunnerDescriptor.from_discovery(discovery(config=[{"name": "other", "type": "string"}]))

    assert descriptor.config_schema == [{"name": "other", "type": "string"}]


def test_description_falls_back_to_the_discovery() -> None:
    descriptor = AgentRunnerDescriptor.from_discovery(discovery(runner_description={"en_US": "Plays"}))

    assert descriptor.description == {"en_US": "Plays"}


def test_manifest_with_another_id_than_its_address_is_refused() -> None:
    with pytest.raises(RunnerAddressMismatch, match="set the manifest's id to the address") as caught:
        AgentRunnerDescriptor.from_discovery(discovery(runner_name="other"))
    assert caught.value.address == "plugin:runhost/scripted/other"


def test_address_that_makes_no_runner_id_is_refused() -> None:
    with pytest.raises(InvalidRunnerId):
        AgentRunnerDescriptor.from_discovery(discovery(plugin_name="a/b"))


def test_descriptor_of_a_host_adapter_is_refused() -> None:
    descriptor = AgentRunnerDescriptor.from_discovery(discovery()).model_dump()

    with pytest.raises(ValidationError, match="source"):
        AgentRunnerDescriptor.model_validate(descriptor | {"source": "host_adapter"})
    assert AgentRunnerDescriptor.model_validate(descriptor | {"extra": 1}).id == MANIFEST["id"]
