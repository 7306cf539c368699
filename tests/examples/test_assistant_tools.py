"""Tools of a real MCP server in the hands of the example assistant (SECURITY LA-04)."""

import json
from typing import Any

from runhost.client import SkillRequest
from tests.examples.assistant import ECHO, TOOL_SERVER, Assistant, asks_for, in_turn, repeats_last_message, says

WAIT = f"{TOOL_SERVER}__wait"


async def test_answer_contains_what_the_authorized_tool_returned(assistant: Assistant) -> None:
    """LA-04."""
    await assistant.put(resource_policy={"allowed_tool_names": [ECHO, WAIT], "denied_tool_names": [WAIT]})
    assistant.stub.behave = in_turn(asks_for(ECHO, {"order": "4711 ✓"}), repeats_last_message)

    run = await assistant.say("What is my order?")

    assert (run.status, run.status_reason) == ("completed", None)
    context = await assistant.host.context(run.run_id)
    assert [tool["tool_name"] for tool in context["resources"]["tools"]] == [ECHO]
    offered = [[tool["function"]["name"] for tool in request.json["tools"]] for request in assistant.stub.requests]
    assert offered == [[ECHO], [ECHO]]
    rows: list[Any] = [row for row in await assistant.ledger(run.run_id) if row.source == "runner"]
    assert [row.type for row in rows if row.type != "message.delta"] == [
        "message.completed",
        "tool.call.started",
        "tool.call.completed",
        "run.completed",
    ]
    started, completed = (row.data for row in rows if row.type.startswith("tool.call."))
    assert (started["tool_name"], started["parameters"]) == (ECHO, {"order": "4711 ✓"})
    assert (completed["tool_call_id"], completed["result"]) == (started["tool_call_id"], {"order": "4711 ✓"})
    *_, answer = await assistant.answers()
    assert "4711 ✓" in json.loads(answer.removeprefix("It is: "))
    calls = [row for row in await assistant.audited(run.run_id, "state_set") if row.resource == f"tool:{ECHO}"]
    assert [(row.action, row.result) for row in calls] == [("get_tool_detail", "ok"), ("call_tool", "ok")]


async def test_tool_that_was_not_granted_is_never_called(assistant: Assistant) -> None:
    """LA-04, PM-2: the model may ask for it, and is told that there is none."""
    await assistant.put(resource_policy={"allowed_tool_names": [ECHO]})
    assistant.stub.behave = in_turn(asks_for(WAIT, {}), repeats_last_message)

    run = await assistant.say("Wait for me")

    assert run.status == "completed"
    assert await assistant.ledger(run.run_id, "tool.call.started") == []
    assert "There is no such tool" in (await assistant.answers())[-1]
    assert "wait" not in assistant.host.tool_calls()


async def test_failing_tool_is_told_to_the_model(assistant: Assistant) -> None:
    """The model may do something else; the run goes on."""
    failing = f"{TOOL_SERVER}__tool-1"
    await assistant.put(resource_policy={"allowed_tool_names": [failing]})
    assistant.stub.behave = in_turn(asks_for(failing, {}), repeats_last_message)

    run = await assistant.say("Try it")

    assert run.status == "completed"
    (completed,) = await assistant.ledger(run.run_id, "tool.call.completed")
    assert "Unknown tool" in str(completed.data["error"])
    assert "Unknown tool" in (await assistant.answers())[-1]


async def test_model_that_only_asks_for_tools_comes_to_an_end(assistant: Assistant) -> None:
    """LA-07: a controlled failure."""
    await assistant.put(resource_policy={"allowed_tool_names": [ECHO]})
    assistant.stub.behave = asks_for(ECHO, {"again": True})

    run = await assistant.say("Go on")

    assert (run.status, run.status_code) == ("failed", "assistant.rounds")
    assert len(assistant.stub.requests) == 8
    assert len(await assistant.ledger(run.run_id, "tool.call.completed")) == 8


async def test_skill_is_activated_as_a_tool(assistant: Assistant) -> None:
    """HOST 6: its instructions reach the model once it asks for them."""
    skill = f"review-{assistant.name}"
    await assistant.client.put_skill(skill, SkillRequest(instructions="Read it twice.", description="Reviews."))
    await assistant.put(resource_policy={"allowed_skill_names": [skill]})
    assistant.stub.behave = in_turn(asks_for("activate", {"skill_name": skill}), repeats_last_message, says("Done."))

    run = await assistant.say("Review this")

    assert run.status == "completed"
    assert "Read it twice." in (await assistant.answers())[-1]
