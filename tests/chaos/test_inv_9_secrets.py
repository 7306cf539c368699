"""A secret that a user sends is nowhere but in the database (INV-9, P-35)."""

import base64
import json
from typing import Any

import pytest

from runhost.protocol import workflow_id_for
from tests.chaos.stack import Stack
from workflows.client import connect

CANARY = "canary-5f2c9e71"


def texts(value: Any) -> str:
    """Return everything that a history says, payloads decoded."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key == "data" and isinstance(item, str):
                    found.append(base64.b64decode(item).decode(errors="replace"))
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        else:
            found.append(str(value))

    walk(value)
    return "\n".join(found)


@pytest.mark.parametrize(
    "script",
    [
        [{"message": CANARY}, {"completed": "stop"}],
        [{"failed": {"code": "my.code", "error": CANARY}}],
        [{"crash": CANARY}],
        [{"malformed": CANARY}],
        [{"result": {"type": "message.completed", "data": {CANARY: CANARY}}}, {"completed": "stop"}],
    ],
    ids=["message", "reported failure", "crash", "malformed", "rejected"],
)
async def test_inv_9_canary_is_in_no_history_log_or_metric(stack: Stack, script: list[Any]) -> None:
    agent = stack.agent(script, secret_setting=CANARY)
    await stack.request("PUT", "/v1/agents/a1", json=agent, headers={"X-Canary": CANARY})
    run_id = await stack.post_message(CANARY)
    run = await stack.ended(run_id)
    refused = await stack.http.post("/v1/events", json={CANARY: CANARY}, headers={"Authorization": f"Bearer {CANARY}"})
    assert refused.status_code == 401
    assert CANARY in json.dumps([run, await stack.ledger(run_id)]) + json.dumps(
        await stack.request("GET", "/v1/conversations/c1/transcript")
    )
    client = await connect(stack.temporal.address)
    history = await client.get_workflow_handle(workflow_id_for(run_id)).fetch_history()
    assert CANARY not in texts(history.to_json_dict())
    assert CANARY not in (await stack.http.get("/metrics")).text
    logs = {path: path.read_text(errors="replace") for path in stack.directory.logs.iterdir()}
    assert any("run.ended" in log for log in logs.values())
    assert [path.name for path, log in logs.items() if CANARY in log] == []
