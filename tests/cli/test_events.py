import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.client.stub import RUN_ID, TIME, HostStub, answer, event, problem, run
from tests.fixtures.openai_stub import Reply, StubRequest

STARTED = answer(202, {"event_id": "e1", "disposition": "run_started", "run_id": RUN_ID})
ENVELOPE = {
    "event_id": "e7",
    "event_type": "group.member_joined",
    "source": "platform",
    "input": {},
    "delivery": {"surface": "chat"},
}


def sent(stub: HostStub) -> dict[str, Any]:
    return stub.requests[0].json


async def test_text_is_sent_as_a_message(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(STARTED)

    outcome = await cli("events", "send", "hello ✓", "--conversation", "c1", "--bot", "b1", "--actor", "u1")

    assert (outcome.code, outcome.stdout) == (0, "")
    assert outcome.stderr == f"Event e1: run_started, run {RUN_ID}\n"
    assert sent(host_stub) | {"event_id": "", "delivery": {}} == {
        "event_id": "",
        "event_type": "message.received",
        "source": "api",
        "bot_id": "b1",
        "conversation_id": "c1",
        "actor": {"actor_type": "user", "actor_id": "u1"},
        "input": {"text": "hello ✓"},
        "delivery": {},
    }


async def test_each_message_has_an_id_of_its_own(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(STARTED)

    for _ in range(2):
        await cli("events", "send", "hello")

    assert host_stub.requests[0].json["event_id"] != host_stub.requests[1].json["event_id"]


@pytest.mark.parametrize("source", ["file", "standard input"])
async def test_file_holds_the_envelope_and_options_win(
    cli: Cli, host_stub: HostStub, tmp_path: Path, source: str
) -> None:
    path = tmp_path / "envelope.json"
    path.write_text(json.dumps(ENVELOPE))
    host_stub.play(STARTED)

    given = str(path) if source == "file" else "-"
    outcome = await cli("events", "send", "--file", given, "--data", '{"a": 1}', stdin=json.dumps(ENVELOPE))

    assert outcome.code == 0
    assert sent(host_stub) == {**ENVELOPE, "data": {"a": 1}}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say something"),
        (("x", "--data", "{"), "no valid JSON"),
        (("x", "--data", "[1]"), "must be a JSON object"),
        (("x", "--data", '{"a": NaN}'), "data"),
        (("x", "--type", "Nope"), "event_type"),
        (("x", "--event-id", "e" * 256), "event_id"),
        (("--file", "/nowhere/envelope.json"), "No such file"),
        (("--file", "-"), "surprise"),
    ],
    ids=["nothing", "cut", "list", "NaN", "type", "id", "no file", "unknown field"],
)
async def test_wrong_input_is_told_before_anything_is_sent(
    cli: Cli, host_stub: HostStub, arguments: tuple[str, ...], told: str
) -> None:
    outcome = await cli("events", "send", *arguments, stdin=json.dumps({**ENVELOPE, "surprise": 1}))

    assert (outcome.code, outcome.stdout) == (2, "")
    assert told in outcome.stderr
    assert host_stub.requests == []


@pytest.mark.parametrize("follow", [(), ("--follow",)], ids=["send", "follow"])
async def test_ignored_event_says_what_to_do(cli: Cli, host_stub: HostStub, follow: tuple[str, ...]) -> None:
    host_stub.play(answer(202, {"event_id": "e1", "disposition": "ignored", "reason": "no_binding", "detail": "Bind."}))

    outcome = await cli("events", "send", "hello", *follow)

    assert outcome.code == (1 if follow else 0)
    assert "Event e1: ignored\nBind.\n" in outcome.stderr


async def test_event_sent_again_says_so(cli: Cli, host_stub: HostStub) -> None:
    receipt = {"event_id": "e1", "disposition": "duplicate", "original_disposition": "run_started", "run_id": RUN_ID}
    host_stub.play(answer(202, receipt))

    outcome = await cli("events", "send", "hello", "--event-id", "e1")

    assert outcome.stderr == f"Event e1: run_started, run {RUN_ID} (it was sent before)\n"


async def stream(_request: StubRequest, reply: Reply) -> None:
    """Stream a short run."""
    await reply.start_stream()
    for row in (
        event(1, "host.attempt_started", source="host", attempt=1),
        event(2, data={"chunk": {"content": "durable "}}),
        event(3, data={"chunk": {"content": "\x1b[31m✓"}}),
        event(4, "message.completed", data={"message": {"role": "assistant", "content": "durable \x1b[31m✓"}}),
        event(5, "host.run_ended", source="host", data={"status": "completed"}),
    ):
        await reply.send_event(row)
    await reply.end_chunks()


FINISHED = run(status="completed", finished_at=TIME, last_sequence=5, usage={"prompt_tokens": 3, "total_tokens": 7})


async def test_follow_writes_the_answer_only_to_standard_output(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(STARTED, stream, answer(200, FINISHED))

    outcome = await cli("events", "send", "hello", "--follow")

    assert outcome.code == 0
    assert outcome.stdout == "durable �[31m✓\n"
    assert f"completed after 0.00 s, 5 ledger rows, 7 tokens, run {RUN_ID}" in outcome.stderr


async def test_follow_in_json_writes_receipt_and_rows(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(STARTED, stream, answer(200, FINISHED))

    outcome = await cli("events", "send", "hello", "--follow", "--json")

    receipt, *rows = outcome.documents
    assert receipt == {"event_id": "e1", "disposition": "run_started", "run_id": RUN_ID}
    assert [row["sequence"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[2]["data"]["chunk"]["content"] == "\x1b[31m✓"
    assert outcome.stderr == ""


async def test_run_that_fails_ends_with_1_and_says_why(cli: Cli, host_stub: HostStub) -> None:
    failed = run(status="failed", status_code="runner.error", status_reason="no model\x1b[2J", last_sequence=5)
    host_stub.play(STARTED, stream, answer(200, failed))

    outcome = await cli("events", "send", "hello", "--follow")

    assert outcome.code == 1
    assert "failed, 5 ledger rows" in outcome.stderr
    assert "runner.error: no model�[2J" in outcome.stderr


async def test_ambiguous_binding_is_told(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(problem(409, "binding_ambiguous"))

    outcome = await cli("events", "send", "hello")

    assert outcome.code == 1
    assert "binding_ambiguous (409)" in outcome.stderr
