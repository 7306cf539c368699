import re
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.client.stub import RUN_ID, TIME, HostStub, Step, answer, event, frames, run

LATER = "2026-05-01T12:00:02.5Z"
ATTEMPT = {
    "run_id": RUN_ID,
    "attempt": 1,
    "started_at": TIME,
    "ended_at": LATER,
    "outcome": "failed",
    "code": "runner.error",
    "worker_identity": "w1",
    "temporal_run_id": "t",
    "activity_attempt": 1,
}


def page(*items: Any, more: str | None = None) -> Step:
    return answer(200, {"items": list(items), "next_cursor": more, "has_more": more is not None})


async def test_list_shows_runs_with_their_whole_ids(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page(run(status="completed", agent_id="a1", finished_at=LATER), run(conversation_id="c\u202e1")))

    outcome = await cli("runs", "list")

    head, first, second = outcome.stdout.splitlines()
    assert head.split() == ["run", "status", "agent", "conversation", "created", "(UTC)", "took"]
    assert first.split() == [RUN_ID, "completed", "a1", "-", "2026-05-01", "12:00:00", "2.50", "s"]
    assert "c�1" in second


async def test_list_reads_as_many_pages_as_it_takes(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page(*[run()] * 200, more="c2"), page(*[run()] * 50, more="c3"))

    outcome = await cli("runs", "list", "--limit", "250", "--status", "failed", "--agent", "a1", "--json")

    assert len(outcome.documents) == 250
    assert [request.path for request in host_stub.requests] == [
        "/v1/runs?limit=200&status=failed&agent_id=a1",
        "/v1/runs?limit=50&cursor=c2&status=failed&agent_id=a1",
    ]


async def test_list_of_nothing_says_so(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(page())

    outcome = await cli("runs", "list", "--bot", "b1")
    as_json = await cli("runs", "list", "--json")

    assert (outcome.code, outcome.stdout) == (0, "")
    assert "No run matches" in outcome.stderr
    assert (as_json.stdout, as_json.stderr) == ("", "")


@pytest.mark.parametrize("arguments", [("--status", "odd"), ("--limit", "0"), ("--bot", "x" * 256)])
async def test_wrong_filter_is_refused(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert (await cli("runs", "list", *arguments)).code == 2


def rows() -> list[dict[str, Any]]:
    deltas = [event(2 + n, data={"chunk": {"content": f" word{n}"}}, attempt=1, created_at=LATER) for n in range(20)]
    failed = event(22, "run.failed", data={"code": "runner.error", "error": "it\nbroke [bold]"}, attempt=1)
    ended = event(23, "host.run_ended", source="host", data={"status": "failed"})
    return [event(1, "host.attempt_started", source="host", attempt=1), *deltas, failed, ended]


async def test_show_tells_run_attempts_and_ledger(cli: Cli, host_stub: HostStub) -> None:
    failed = run(status="failed", status_code="runner.error", last_sequence=23, agent_id="a1", agent_version=3)
    host_stub.play(answer(200, failed), page(ATTEMPT), page(*rows()))

    outcome = await cli("runs", "show", RUN_ID)

    assert outcome.code == 0
    assert "a1 (version 3)" in outcome.stdout
    assert re.search(r"^1 +failed +runner.error +2.50 s +w1", outcome.stdout, re.MULTILINE)
    assert '" word2"' in outcome.stdout
    assert '" word3"' not in outcome.stdout
    assert "… 15 more" in outcome.stdout
    assert "2.500 s" in outcome.stdout
    assert "runner.error: it broke [bold]" in outcome.stdout


async def test_show_all_shortens_nothing(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(200, run(last_sequence=40)), page(ATTEMPT), page(*rows(), more="c"), page())

    outcome = await cli("runs", "show", RUN_ID, "--all")

    assert '" word3"' in outcome.stdout
    assert "17 later rows are not shown" in outcome.stderr


async def test_show_in_json_is_one_object(cli: Cli, host_stub: HostStub) -> None:
    odd = event(1, data={"text": "lone \ud800"})
    host_stub.play(answer(200, run()), page(ATTEMPT), page(odd))

    [document] = (await cli("runs", "show", RUN_ID, "--json")).documents

    assert document["run"]["run_id"] == RUN_ID
    assert document["attempts"][0]["outcome"] == "failed"
    assert document["events"][0]["data"] == {"text": "lone \ud800"}


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1), ("timeout", 1)])
async def test_follow_ends_as_the_run_does(cli: Cli, host_stub: HostStub, status: str, code: int) -> None:
    host_stub.play(frames(5, 6, cut_off=True), frames(7, end=True), answer(200, run(status=status)))

    outcome = await cli("runs", "follow", RUN_ID, "--after", "4", "--json")

    assert outcome.code == code
    assert [document["sequence"] for document in outcome.documents] == [5, 6, 7]
    assert host_stub.requests[0].headers["last-event-id"] == "4"


async def test_follow_remarks_on_what_is_no_text(cli: Cli, host_stub: HostStub) -> None:
    happened = [
        event(1, "host.attempt_started", attempt=2),
        event(2, data={"chunk": {"content": "a"}}),
        event(3, "tool.call.started", data={"tool_name": "search"}),
        event(4, "artifact.created", data={"artifact_id": "x", "name": "plot.png"}),
        event(5, "host.result_rejected", data={"reason": "type: missing"}),
        event(6, "host.cancel_requested"),
        event(7, "host.run_ended"),
    ]

    async def stream(_request: Any, reply: Any) -> None:
        await reply.start_stream()
        for row in happened:
            await reply.send_event(row)
        await reply.end_chunks()

    host_stub.play(stream, answer(200, run(status="cancelled", current_attempt=2)))

    outcome = await cli("runs", "follow", RUN_ID)

    assert outcome.stdout == "a\n"
    assert outcome.stderr.splitlines()[:5] == [
        "Attempt 2 starts.",
        "Tool search is called.",
        "Artifact x was created: plot.png",
        "A result was rejected: type: missing",
        "Cancel requested.",
    ]


async def test_cancel_gives_the_reason(cli: Cli, host_stub: HostStub) -> None:
    host_stub.play(answer(202, run()))

    outcome = await cli("runs", "cancel", RUN_ID, "--reason", "enough")
    as_json = await cli("runs", "cancel", RUN_ID, "--json")

    assert host_stub.requests[0].path == f"/v1/runs/{RUN_ID}/cancel"
    assert host_stub.requests[0].json == {"reason": "enough"}
    assert (outcome.code, outcome.stdout) == (0, "")
    assert f"runhost runs follow {RUN_ID}" in outcome.stderr
    assert as_json.documents[0]["run_id"] == RUN_ID
