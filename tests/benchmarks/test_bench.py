"""Every measure can be taken and says what it should; nothing here asserts how fast anything is."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from runhost.cli import bench, main
from tests.benchmarks.bench import MEASURES
from tests.benchmarks.report import Budget, Line
from tests.benchmarks.stage import Stage

FIELDS = ["name", "value", "unit", "baseline", "ratio", "budget", "ok", "settings"]
LINES = {
    "runs": ["runs"],
    "start": ["start"],
    "history": ["history_events", "history_bytes"],
    "journal": ["journal", "journal_single"],
    "stream": [
        "stream_p50",
        "stream_p99",
        "stream_many_runs_p50",
        "stream_many_runs_p99",
        "stream_many_readers_p99",
    ],
    "pages": ["pages"],
    "snapshot": ["snapshot_build", "snapshot_with_lookup"],
    "host": [
        "host_state_get",
        "host_state_get_p95",
        "host_state_get_gate",
        "host_history_page",
        "host_history_page_p95",
        "host_history_page_gate",
        "host_artifact_read",
        "host_artifact_read_p95",
        "host_artifact_read_gate",
    ],
    "cancel": ["cancel", "cancel_burst", "server_at_rest"],
    "loss": ["loss"],
    "idle": ["idle"],
}


@pytest.mark.parametrize("name", MEASURES)
async def test_measure_says_well_formed_lines(stage: Stage, name: str) -> None:
    lines = [json.loads(line.encode(stage.settings)) for line in await MEASURES[name](stage)]
    assert [line["name"] for line in lines] == LINES[name]
    for line in lines:
        assert list(line) == FIELDS
        assert all(math.isfinite(line[field]) for field in ("value", "baseline", "ratio"))
        assert line["budget"]
        assert {"postgres", "temporal"} <= set(line["settings"])


@pytest.mark.parametrize(
    ("budget", "value", "baseline", "is_ok"),
    [
        (Budget(value_at_most=10), 10, 1, True),
        (Budget(value_at_most=10), 10.1, 1, False),
        (Budget(ratio_at_least=0.75), 3, 4, True),
        (Budget(ratio_at_least=0.75), 2.9, 4, False),
        (Budget(ratio_at_most=2), 2, 1, True),
        (Budget(value_at_most=10, ratio_at_most=2), 5, 2, False),
    ],
    ids=["within", "above", "fast-enough", "too-slow", "near-enough", "one-of-two-missed"],
)
def test_budget_is_met_when_all_bounds_hold(budget: Budget, value: float, baseline: float, is_ok: bool) -> None:
    assert Line("m", value, "ms", baseline, budget, {}).is_ok is is_ok


def test_unknown_measure_is_refused_by_name() -> None:
    result = CliRunner().invoke(main, ["bench", "nonsense"])
    assert result.exit_code == bench.EXIT_USAGE
    assert "nonsense" in result.stderr
    assert "journal" in result.stderr


def test_command_names_all_measures_in_its_help() -> None:
    assert bench.bench.__doc__ is not None
    assert f"Measures: {', '.join(MEASURES)}." in " ".join(bench.bench.__doc__.split())


@pytest.mark.timeout(120)
def test_command_prints_lines_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "runhost.cli", "bench", "history", "--quick", "--json")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    assert [json.loads(line)["name"] for line in ended.stdout.splitlines()] == LINES["history"]
    assert list(tmp_path.iterdir()) == []
