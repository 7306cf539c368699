"""The runners that ship pass the kit: what does not apply to them is known, and nothing fails."""

from pathlib import Path

import pytest

from runhost.protocol import JsonObject
from runners.conformance import MODEL_NAME, Target, model_endpoint, select, verify
from runners.discovery import discover
from runners.in_process import InProcessTransport
from runners.official import openai_chat, scripted
from runners.registry import RunnerRegistry
from runners.routing import RoutingTransport
from runners.subprocess.transport import SubprocessTransport
from tests.runners.conformance import misbehaving
from tests.runners.conformance.misbehaving import Good
from tests.runners.conformance.targets import LIMITS, failures, outcomes, target_of
from tests.runners.manifests import manifest_with, write_runner

SCRIPTED = "plugin:runhost/scripted/default"
OPENAI_CHAT = "plugin:runhost/openai-chat/default"
NUMBERS = {"duplicate_sequence", "missing_sequence"}
GOOD_CODE = Path(misbehaving.__file__).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def registry() -> RunnerRegistry:
    folders = [Path(package.__path__[0]) for package in (scripted, openai_chat)]
    return RunnerRegistry(lambda: discover(folders, packages=[]))


def not_applicable(outcome_of: dict[str, str]) -> set[str]:
    return {case for case, outcome in outcome_of.items() if outcome == "not_applicable"}


async def test_scripted_runner_passes(registry: RunnerRegistry) -> None:
    report = await verify(Target(registry.get(SCRIPTED), InProcessTransport(registry)), limits=LIMITS)
    assert failures(report) == {}
    assert not_applicable(outcomes(report)) == {"usage", "host_calls", "refused_calls", *NUMBERS}


async def test_openai_chat_runner_passes_with_the_endpoint_of_the_kit(registry: RunnerRegistry) -> None:
    async with model_endpoint() as endpoint:
        config: JsonObject = {"base_url": endpoint.base_url, "model": MODEL_NAME}
        target = Target(registry.get(OPENAI_CHAT), InProcessTransport(registry), config=config, endpoint=endpoint)
        report = await verify(target, limits=LIMITS)
    assert failures(report) == {}
    assert not_applicable(outcomes(report)) == {"host_calls", *NUMBERS}


async def test_runner_that_is_not_configured_says_how_to_configure_it(registry: RunnerRegistry) -> None:
    target = Target(registry.get(OPENAI_CHAT), InProcessTransport(registry))
    report = await verify(target, select(["answer"]), limits=LIMITS)
    (case,) = report.cases
    assert "runner.config" in case.seen
    assert "--config" in case.advice


async def test_program_of_its_own_passes(tmp_path: Path) -> None:
    """P-S3: what crosses a process is numbered, which the SDK does."""
    manifest = manifest_with("spec.permissions", {"models": ["invoke"]})
    manifest["execution"] = {"python": {"path": "runner.py", "attr": "Good"}, "process": "separate"}
    file = write_runner(tmp_path, manifest, GOOD_CODE)
    registry = RunnerRegistry(lambda: discover([file.parent], packages=[]))
    transport = RoutingTransport(
        registry, in_process=InProcessTransport(registry), programs=SubprocessTransport(registry)
    )
    target = Target(registry.get("plugin:acme/echo/default"), transport, crosses_process=True)
    cases = select(["answer", "missing_sequence", "host_calls", "cancel"])
    report = await verify(target, cases)
    assert set(outcomes(report).values()) == {"passed"}, failures(report)


async def test_results_without_numbers_fail_where_they_cross_a_process() -> None:
    """P-S3."""
    report = await verify(target_of(Good, crosses_process=True), select(["missing_sequence"]), limits=LIMITS)
    assert "has no sequence" in failures(report)["missing_sequence"]
