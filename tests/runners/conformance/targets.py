"""Runners of test modules, as targets of the conformance kit."""

from collections.abc import Sequence
from pathlib import Path

from runhost.protocol import AgentRunnerDiscovery, AgentRunnerManifest, AgentRunnerPermissions, JsonObject
from runhost.sdk import AgentRunner
from runners.code import RunnerCode
from runners.conformance import Limits, Report, Target
from runners.in_process import InProcessLimits, InProcessTransport
from runners.manifest import DiscoveredRunner
from runners.registry import RunnerRegistry
from tests.runners.contexts import runner_id_of

# As short as two busy cores allow.
LIMITS = Limits(
    run_seconds=5.0, grace_seconds=0.5, after_end_seconds=0.3, deadline_slack_seconds=0.2, total_seconds=50.0
)


def target_of(runner: type[AgentRunner], config: JsonObject | None = None, *, crosses_process: bool = False) -> Target:
    """Reach a class of an importable module; it is granted a model."""
    name = runner.__name__
    manifest = AgentRunnerManifest(
        id=runner_id_of(name), name=name, label={"en_US": name}, permissions=AgentRunnerPermissions(models=["invoke"])
    )
    discovery = AgentRunnerDiscovery(plugin_author="test", plugin_name="runners", runner_name=name, manifest=manifest)
    package, _, module = runner.__module__.rpartition(".")
    code = RunnerCode(Path(__file__).parent, module, name, package)
    registry = RunnerRegistry(lambda: [DiscoveredRunner(code.folder / "runner.yaml", discovery, code)])
    transport = InProcessTransport(registry, InProcessLimits(blocked_after_seconds=2.0))
    return Target(registry.get(manifest.id), transport, crosses_process, config or {})


def outcomes(report: Report) -> dict[str, str]:
    """The outcome of each case by its id."""
    return {case.id: case.outcome.value for case in report.cases}


def failures(report: Report) -> dict[str, str]:
    """What was seen of each case that failed."""
    return {case.id: f"{case.scenario}: {case.seen}" for case in report.cases if case.outcome == "failed"}


def ends(report: Report) -> dict[str, Sequence[str]]:
    """How the runs of each scenario ended."""
    return {scenario.name: scenario.ends for scenario in report.scenarios}
