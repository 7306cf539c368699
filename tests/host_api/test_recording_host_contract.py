"""The host of the conformance kit refuses and grants as the real gate does: one contract for both."""

from typing import Any

import pytest

from host_api.authorization import Authorization
from host_api.errors import HostCallError
from host_api.methods import ALL_METHODS
from runhost.protocol import AgentAPIException, AgentRunContext, JsonObject
from runhost.protocol.host_api import HOST_METHODS
from runners.conformance.host import RecordingHost
from runners.conformance.scenario import PLAIN
from tests.host_api.test_method_matrix import ROWS, Narrow
from tests.runners.contexts import run_context

METHODS = {method.name: method for method in ALL_METHODS}
FULL: dict[str, Any] = {
    "runner_id": "plugin:runhost/scripted/default",
    "plugin_identity": "runhost/scripted",
    "resources": {
        "models": [{"model_id": "m1", "operations": ["invoke", "stream", "rerank"]}],
        "tools": [{"tool_name": "t1", "operations": ["detail", "call"]}],
        "knowledge_bases": [{"kb_id": "kb1", "operations": ["list", "retrieve"]}],
        "files": [{"file_id": "f1", "operations": ["config", "knowledge"]}],
        "storage": {"plugin_storage": True, "workspace_storage": True},
    },
    "available_apis": dict.fromkeys(
        (
            *("prompt_get", "history_page", "history_search", "event_get", "event_page"),
            *("artifact_metadata", "artifact_read", "state", "storage", "steering_pull"),
        ),
        True,
    ),
    "workspace_id": "w1",
    "conversation_id": "c1",
    "state_policy": {},
    "state_context": {"scope_keys": {"actor": "a", "conversation": "c"}, "binding_identity": "b"},
}


def gate_says(authorization: Authorization, name: str, params: JsonObject) -> str:
    """What the gate decides before the method itself is called."""
    definition = METHODS[name]
    try:
        definition.requirement.check(authorization, definition.wire.params.model_validate(params))
    except HostCallError as refusal:
        return refusal.code.value
    return "ok"


async def kit_says(authorization: Authorization, name: str, params: JsonObject) -> str:
    plain = run_context()
    context = AgentRunContext.model_validate(
        plain.model_dump(mode="json")
        | {
            "resources": authorization.resources.model_dump(mode="json"),
            "context": plain.context.model_dump(mode="json")
            | {
                "conversation_id": authorization.conversation_id,
                "available_apis": authorization.available_apis.model_dump(mode="json"),
            },
        }
    )
    host = RecordingHost(context, PLAIN, lambda: None)
    try:
        if HOST_METHODS[name].is_stream:
            answers = [event async for event in host.stream(name, params)]
        else:
            answers = [await host.call(name, params)]
    except AgentAPIException as refusal:
        # An id that only this test knows is granted and then not found among the kit's own things.
        return "ok" if refusal.error.code == "not_found" else refusal.error.code
    for answer in answers:
        HOST_METHODS[name].returns.model_validate(answer)
    return "ok"


@pytest.mark.parametrize("part", ["granted", "not_granted", "wrong_operation"])
@pytest.mark.parametrize("name", HOST_METHODS)
async def test_kit_and_gate_agree(name: str, part: str) -> None:
    row = ROWS[name]
    narrow: Narrow | None = None if part == "granted" else getattr(row, part)
    authorization = Authorization.model_validate(FULL)
    if narrow is not None:
        authorization = narrow(authorization)
    expected = gate_says(authorization, name, row.granted)
    assert await kit_says(authorization, name, row.granted) == expected
    assert expected == ("ok" if narrow is None else "unauthorized")


async def test_kit_and_gate_refuse_another_conversation_alike() -> None:
    authorization = Authorization.model_validate(FULL)
    for name in ("history_page", "event_page"):
        params: JsonObject = {"conversation_id": "c2"}
        assert gate_says(authorization, name, params) == "unauthorized"
        assert await kit_says(authorization, name, params) == "unauthorized"
