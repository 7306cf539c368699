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
      python:
        path: runner.py       # inside the folder of this file
        attr: EchoRunner
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
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
from runners.errors import ManifestError

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


class PythonExecution(StrictModel):
    """Which class to load: a file inside the manifest's folder, and a name in it."""

    path: str = Field(max_length=1_000)
    attr: str = Field(max_length=255)


class ComponentExecution(StrictModel):
    """How the runner is executed; in process there is Python only."""

    python: PythonExecution


class ComponentManifest(StrictModel):
    """The whole file; unknown fields are refused, as they are mostly misspelt ones."""

    api_version: Literal["v1"] = Field(alias="apiVersion")
    kind: Literal["AgentRunner"]
    metadata: ComponentMetadata
    spec: ComponentSpec = ComponentSpec()
    execution: ComponentExecution


@dataclass(frozen=True, slots=True)
class DiscoveredRunner:
    """A runner that was found: how it describes itself, and where its code is."""

    file: Path
    discovery: AgentRunnerDiscovery
    code: RunnerCode


def load_manifest(file: Path, package: str | None = None) -> DiscoveredRunner:
    """Read one manifest; no code is imported.

    Args:
        file: the manifest; its folder holds the code.
        package: name under which that folder can be imported; None for a folder that is no package.

    Raises:
        ManifestError: it cannot be read, a field is wrong, or its code lies outside its folder.
    """
    content = _read_yaml(file)
    try:
        component = ComponentManifest.model_validate(content)
    except ValidationError as error:
        raise _first_fault(file, error) from None
    code = _locate_code(file, component.execution.python, package)
    try:
        return DiscoveredRunner(file, _describe(component), code)
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


def _locate_code(file: Path, python: PythonExecution, package: str | None) -> RunnerCode:
    folder = file.parent.resolve()
    path = PurePosixPath(python.path)
    # Resolved, so that neither `..` nor a link leads out of the folder.
    target = (folder / path).resolve()
    if path.is_absolute() or not target.is_relative_to(folder):
        raise ManifestError(file, "execution.python.path", f"{python.path!r} must stay inside {folder}")
    if path.suffix != ".py" or not all(part.isidentifier() for part in path.with_suffix("").parts):
        raise ManifestError(
            file, "execution.python.path", f"{python.path!r} must be a Python module such as 'runner.py'"
        )
    if not target.is_file():
        raise ManifestError(file, "execution.python.path", f"there is no file {python.path!r}")
    if not python.attr.isidentifier():
        raise ManifestError(file, "execution.python.attr", f"{python.attr!r} must be the name of a class")
    return RunnerCode(folder, ".".join(path.with_suffix("").parts), python.attr, package)


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
