"""The example assistant in both forms, and that of the guide, keep to the protocol."""

from pathlib import Path

import pytest

from runners.conformance import Target, verify
from runners.discovery import discover
from runners.in_process import InProcessTransport
from runners.registry import RunnerRegistry
from runners.routing import RoutingTransport
from runners.subprocess.transport import SubprocessTransport
from tests.docs.test_docs import blocks, page
from tests.examples.assistant import FOLDER, copy_as_program
from tests.runners.conformance.targets import LIMITS, failures, outcomes

NUMBERS = {"duplicate_sequence", "missing_sequence"}


def target_of(folder: Path) -> Target:
    registry = RunnerRegistry(lambda: discover([folder], packages=[]))
    transport = RoutingTransport(
        registry, in_process=InProcessTransport(registry), programs=SubprocessTransport(registry)
    )
    (descriptor,) = registry.descriptors()
    return Target(descriptor, transport, crosses_process=folder.name == "separate")


async def test_assistant_passes_in_process() -> None:
    report = await verify(target_of(FOLDER), limits=LIMITS)

    assert failures(report) == {}
    assert {case for case, outcome in outcomes(report).items() if outcome == "not_applicable"} == {"usage", *NUMBERS}


async def test_assistant_of_the_guide_passes(tmp_path: Path) -> None:
    (tmp_path / "runner.yaml").write_text(blocks(page("docs/runners.md"), "yaml")[1])
    (tmp_path / "runner.py").write_text(blocks(page("docs/runners.md"), "python")[1])

    report = await verify(target_of(tmp_path), limits=LIMITS)

    assert failures(report) == {}


@pytest.mark.timeout(180)  # a process for each of some thirty runs
async def test_assistant_passes_as_a_process_of_its_own(tmp_path: Path) -> None:
    report = await verify(target_of(copy_as_program(tmp_path / "separate")))

    assert failures(report) == {}
    assert {case for case, outcome in outcomes(report).items() if outcome == "not_applicable"} == {"usage"}
