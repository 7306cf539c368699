from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from runhost.protocol import OPEN, TERMINAL, AgentRun, AgentRunAttempt, AgentRunEvent, RunEventPage, RunStatus

RUN = {
    "run_id": "0190-a",
    "runner_id": "plugin:a/b/c",
    "status": "running",
    "created_at": "2026-08-01T10:00:00Z",
}


def test_statuses_are_open_or_terminal() -> None:
    assert set(RunStatus) == OPEN | TERMINAL
    assert not OPEN & TERMINAL
    assert {status for status in RunStatus if status.is_terminal} == TERMINAL
    assert set(TERMINAL) == {"completed", "failed", "cancelled", "timeout"}
    assert RunStatus.WAITING in OPEN


def test_run_reads_what_the_api_writes() -> None:
    run = AgentRun.model_validate(RUN)

    assert run.status is RunStatus.RUNNING
    assert run.created_at == datetime(2026, 8, 1, 10, tzinfo=UTC)
    assert run.workflow_id == "run-0190-a"
    assert AgentRun.model_validate_json(run.model_dump_json()) == run


def test_run_of_a_newer_host_is_readable() -> None:
    assert AgentRun.model_validate(RUN | {"shard": 3}).run_id == "0190-a"


def test_time_without_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="created_at"):
        AgentRun.model_validate(RUN | {"created_at": "2026-08-01T10:00:00"})


def test_unknown_status_is_refused() -> None:
    with pytest.raises(ValidationError, match="status"):
        AgentRun.model_validate(RUN | {"status": "dispatching"})


def test_ledger_row_starts_at_one_and_keeps_unknown_types() -> None:
    row = {"run_id": "r", "sequence": 1, "type": "x.new", "created_at": "2026-08-01T10:00:00Z"}

    page = RunEventPage.model_validate({"items": [row], "has_more": False})

    assert page.items == [AgentRunEvent.model_validate(row)]
    with pytest.raises(ValidationError, match="sequence"):
        AgentRunEvent.model_validate(row | {"sequence": 0})


def test_attempt_that_goes_on_has_no_outcome() -> None:
    attempt = AgentRunAttempt.model_validate(
        {
            "run_id": "r",
            "attempt": 1,
            "started_at": "2026-08-01T10:00:00Z",
            "worker_identity": "w",
            "temporal_run_id": "t",
            "activity_attempt": 1,
        }
    )

    assert (attempt.ended_at, attempt.outcome, attempt.usage) == (None, None, None)
