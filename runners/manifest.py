"""Reads the component manifest of a runner, `runner.yaml` beside its code (PROTOCOL 3.2).

::

    apiVersion: v1
    kind: AgentRunner
    metadata:
      author: acme            # with plugin and name: plugin:acme/echo/default
      plugin: echo
      name: default
      version: "1.0"          # optional, like label and description
      label: {en_US: Echo}
    spec:
      config: []              # form of the agent's configuration
      capabilities: {streaming: true}
      permissions: {}
    execution:
      python:                 # a class, loaded by the worker
        path: runner.py       # inside the folder of this file
        attr: EchoRunner

Other forms of `execution`::

    execution:
      python: {path: runner.py, attr: EchoRunner}
      process: separate       # the same class in a process of its own for every run

    execution:
      command: [node, runner.js]      # any program that speaks docs/subprocess-runners.md
      environment: [RUNNER_REGION]    # variables of the worker that it gets besides the usual ones
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import Field, ValidationError

from runhost.protocol import (
    AgentRunnerCapabilities,
    AgentRunnerDiscovery,
    AgentRunnerManifest,
    AgentRunnerPermissions,
    DynamicFormItemSchema,
    I18nText,
    Identifier,
    InvalidRunnerId,
    RunnerId,
    StrictModel,
)
from runhost.protocol.errors import field_path
from runners.code import RunnerCode
from runners.errors import InvalidRunner, ManifestError
from runners.execution import ComponentExecution, locate_execution
from runners.program import RunnerProgram

MANIFEST_FILE: Final = "runner.yaml"
MAX_MANIFEST_BYTES: Final = 256 * 1024
DEFAULT_LOCALE: Final = "en_US"


class ComponentMetadata(StrictModel):
    """Who offers the runner and what it is called; the first three make its id."""

    author: Identifier
    plugin: Identifier
    name: Identifier
    version: str | None = Field(default=None, max_length=100)
    label: I18nText | None = None
    description: I18nText | None = None


class ComponentSpec(StrictModel):
    """What the runner can do, what it asks for, and how it is configured."""

    config: list[DynamicFormItemSchema] = []  # noqa: RUF012 - pydantic copies defaults
    capabilities: AgentRunnerCapabilities = AgentRunnerCapabilities()
    permissions: AgentRunnerPermissions = AgentRunnerPermissions()


class ComponentManifest(StrictModel):
    """The whole file; unknown fields are refused, as they are mostly misspelt ones."""

    api_version: Literal["v1"] = Field(alias="apiVersion")
    kind: Literal["AgentRunner"]
    metadata: ComponentMetadata
    spec: ComponentSpec = ComponentSpec()
    execution: ComponentExecution


@dataclass(frozen=True, slots=True)
class DiscoveredRunner:
    """A runner that was found: how it describes itself, and what is executed for it."""

    file: Path
    discovery: AgentRunnerDiscovery
    execution: RunnerCode | RunnerProgram

    @property
    def code(self) -> RunnerCode:
        """Where its class is.

        Raises:
            InvalidRunner: it is a program of its own.
        """
        if isinstance(self.execution, RunnerProgram):
            raise InvalidRunner(self.discovery.manifest.id, "it is a program of its own, not code for this process")
        return self.execution


def load_manifest(file: Path, package: str | None = None) -> DiscoveredRunner:
    """Read one manifest; no code is imported.

    Args:
        file: the manifest; its folder holds the code.
        package: name under which that folder can be imported; None for a folder that is no package.

    Raises:
        ManifestError: it cannot be read, a field is wrong, or its code or program lies outside its folder.
    """
    content = _read_yaml(file)
    try:
        component = ComponentManifest.model_validate(content)
    except ValidationError as error:
        raise _first_fault(file, error) from None
    execution = locate_execution(file, component.execution, package)
    try:
        return DiscoveredRunner(file, _describe(component), execution)
    except InvalidRunnerId as error:
        raise ManifestError(file, "metadata", str(error)) from None


def _read_yaml(file: Path) -> object:
    try:
        if file.stat().st_size > MAX_MANIFEST_BYTES:
            raise ManifestError(file, "", f"exceeds {MAX_MANIFEST_BYTES} bytes")
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(file, "", f"cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises ValueError for dates that do not exist, and recurses as deep as the text is nested.
        raise ManifestError(file, "", f"is no valid YAML: {' '.join(str(error).split())}") from error


def _first_fault(file: Path, error: ValidationError) -> ManifestError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return ManifestError(file, field_path(faults[0]["loc"]), faults[0]["msg"] + more)


def _describe(component: ComponentManifest) -> AgentRunnerDiscovery:
    metadata, spec = component.metadata, component.spec
    manifest = AgentRunnerManifest(
        id=str(RunnerId(metadata.author, metadata.plugin, metadata.name)),
        name=metadata.name,
        label=metadata.label or {DEFAULT_LOCALE: metadata.name},
        description=metadata.description,
        capabilities=spec.capabilities,
        permissions=spec.permissions,
        config_schema=spec.config,
    )
    return AgentRunnerDiscovery(
        plugin_author=metadata.author,
        plugin_name=metadata.plugin,
        runner_name=metadata.name,
        runner_description=metadata.description,
        manifest=manifest,
        config=spec.config,
        plugin_version=metadata.version,
    )
