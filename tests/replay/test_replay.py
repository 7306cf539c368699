"""Histories recorded by every released version replay on the current code (INV-11, P-44)."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.replay.record import HISTORIES, SCENARIOS
from workflows.client import DATA_CONVERTER
from workflows.maintenance import MaintenanceWorkflow
from workflows.run import AgentRunWorkflow

RECORDED = sorted(HISTORIES.glob("*/*.json"))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_inv_11_recorded_history_replays(recorded: Path) -> None:
    replayer = Replayer(workflows=[AgentRunWorkflow, MaintenanceWorkflow], data_converter=DATA_CONVERTER)
    history = await asyncio.to_thread(recorded.read_text)
    await replayer.replay_workflow(WorkflowHistory.from_json(recorded.stem, history))


def test_inv_11_every_exit_path_is_recorded_for_every_version() -> None:
    folders = [folder for folder in HISTORIES.iterdir() if folder.is_dir()]
    assert folders
    for folder in folders:
        assert {path.stem for path in folder.glob("*.json")} >= SCENARIOS.keys()
