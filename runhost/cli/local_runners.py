"""Runners on this machine, found without a host."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
import yaml
from pydantic import TypeAdapter, ValidationError

from runhost.cli.output import EXIT_USAGE, fail
from runhost.protocol import AgentRunnerDescriptor, InvalidRunnerId, JsonObject, RunnerId, describe_validation
from runhost.settings import RunnerSettings
from runners.discovery import discover
from runners.errors import DiscoveryFailed, ManifestError, RunnerNotFound
from runners.in_process import InProcessTransport
from runners.manifest import MANIFEST_FILE, DiscoveredRunner, load_manifest
from runners.program import RunnerProgram
from runners.registry import RunnerRegistry
from runners.routing import RoutingTransport
from runners.subprocess.transport import SubprocessTransport
from runners.transport import RunnerTransport

MAX_CONFIG_BYTES: Final = 4 * 1024 * 1024

_JSON_OBJECT: Final = TypeAdapter(JsonObject)


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """A runner that was found, with the registry that holds it."""

    registry: RunnerRegistry
    descriptor: AgentRunnerDescriptor

    @property
    def crosses_process(self) -> bool:
        """Whether it is a program of its own."""
        return isinstance(self.registry.registered(self.descriptor.id).source.execution, RunnerProgram)

    def transport(self) -> RunnerTransport:
        """Make the transport that a worker would use; call it on the event loop that uses it."""
        return RoutingTransport(
            self.registry,
            in_process=InProcessTransport(self.registry),
            programs=SubprocessTransport(self.registry),
        )


def find_runner(name: str) -> LocalRunner:
    """Find a runner by its id, its folder, or its manifest.

    Raises:
        typer.Exit: There is none; standard error says what to do.
    """
    try:
        return _by_id(str(RunnerId.parse(name)))
    except InvalidRunnerId:
        return _in_folder(name)


def read_config(path: str | None) -> JsonObject:
    """Read an agent's configuration for a runner, YAML or JSON; empty for no path.

    Raises:
        typer.BadParameter: The file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    option = "--config"
    try:
        content = Path(path).read_bytes()
        if len(content) > MAX_CONFIG_BYTES:
            raise typer.BadParameter(f"{path!r} exceeds {MAX_CONFIG_BYTES} bytes", param_hint=option)
        return _JSON_OBJECT.validate_python(yaml.safe_load(content) or {})
    except OSError as error:
        raise typer.BadParameter(f"{path!r}: {error.strerror}", param_hint=option) from None
    except ValidationError as error:
        reason = describe_validation(error)
        raise typer.BadParameter(f"{path!r} must hold one object: {reason}", param_hint=option) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise typer.BadParameter(f"{path!r} is no valid YAML: {reason:.300}", param_hint=option) from None


def _by_id(runner_id: str) -> LocalRunner:
    try:
        found = discover(RunnerSettings().runner_paths)
    except ValidationError as error:
        fail(EXIT_USAGE, f"RUNHOST_RUNNER_PATHS: {describe_validation(error)}")
    except DiscoveryFailed as error:
        fail(EXIT_USAGE, f"{error}; correct RUNHOST_RUNNER_PATHS")
    registry = RunnerRegistry(lambda: found)
    try:
        return LocalRunner(registry, registry.get(runner_id))
    except RunnerNotFound:
        known = ", ".join(descriptor.id for descriptor in registry.descriptors()) or "none"
        fail(
            EXIT_USAGE,
            f"no runner {runner_id!r} is installed or in RUNHOST_RUNNER_PATHS, which has: {known}. "
            "Give the folder of its runner.yaml, or add that to RUNHOST_RUNNER_PATHS.",
        )


def _in_folder(name: str) -> LocalRunner:
    path = Path(name)
    file = path if path.name == MANIFEST_FILE else path / MANIFEST_FILE
    if not file.is_file():
        fail(
            EXIT_USAGE,
            f"{name!r} is neither a runner id, such as plugin:author/name/runner, nor a folder with a {MANIFEST_FILE}",
        )
    try:
        found: list[DiscoveredRunner] = [load_manifest(file)]
    except ManifestError as error:
        fail(EXIT_USAGE, str(error))
    registry = RunnerRegistry(lambda: found)
    return LocalRunner(registry, registry.get(found[0].discovery.manifest.id))
