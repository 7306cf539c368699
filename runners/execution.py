"""The `execution` of a manifest: what it may say, and what is executed for it."""

import sys
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from runhost.protocol import StrictModel
from runners.code import RunnerCode
from runners.errors import ManifestError
from runners.program import RunnerProgram
from runners.subprocess.environment import may_ask_for

Argument: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=4_000, pattern=r"^[^\x00]*$")]
VariableName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class PythonExecution(StrictModel):
    """Which class to load: a file inside the manifest's folder, and a name in it."""

    path: str = Field(max_length=1_000)
    attr: str = Field(max_length=255)


class ComponentExecution(StrictModel):
    """How the runner is executed: a class, or a program.

    Attributes:
        python: the class.
        command: the program and its arguments.
        process: whether the class runs in the worker or, like every program, in a process of its own.
        environment: variables of the worker that a process of its own gets besides the usual ones.
    """

    python: PythonExecution | None = None
    command: list[Argument] | None = Field(default=None, min_length=1, max_length=100)
    process: Literal["worker", "separate"] | None = None
    environment: list[VariableName] = Field(default=[], max_length=100)


def locate_execution(file: Path, execution: ComponentExecution, package: str | None) -> RunnerCode | RunnerProgram:
    """Find what a manifest says is executed. Nothing of it is run.

    Args:
        file: the manifest.
        execution: that part of it.
        package: name under which the manifest's folder can be imported; None for a folder that is no package.

    Raises:
        ManifestError: it says too little, too much, or leads out of its folder.
    """
    if (execution.python is None) == (execution.command is None):
        raise ManifestError(file, "execution", "must have either python or command")
    for index, name in enumerate(execution.environment):
        if not may_ask_for(name):
            raise ManifestError(
                file,
                f"execution.environment[{index}]",
                f"{name!r} is no variable that a runner may have; those are RUNNER_..., API_KEY, ..._API_KEY, and the "
                "usual ones for proxies and certificates",
            )
    if execution.python is not None:
        return _locate_class(file, execution, execution.python, package)
    if execution.process == "worker":
        raise ManifestError(file, "execution.process", "a command always runs in a process of its own")
    return _locate_program(file, execution.command or [], execution.environment)


def _locate_class(
    file: Path, execution: ComponentExecution, python: PythonExecution, package: str | None
) -> RunnerCode | RunnerProgram:
    code = _locate_code(file, python, package)
    if execution.process == "separate":
        place = f"{package}.{code.module}" if package else str(PurePosixPath(python.path))
        # -P: modules of the runner's folder must not take the place of the standard library's.
        command = (sys.executable, "-P", "-m", "runhost.sdk.program", f"{place}:{python.attr}")
        return RunnerProgram(code.folder, command, tuple(execution.environment))
    if execution.environment:
        raise ManifestError(file, "execution.environment", "is for `process: separate`; the worker's own is shared")
    return code


def _locate_code(file: Path, python: PythonExecution, package: str | None) -> RunnerCode:
    field, folder, path = "execution.python.path", file.parent.resolve(), PurePosixPath(python.path)
    if path.is_absolute() or not _is_inside(folder, python.path):
        raise ManifestError(file, field, f"{python.path!r} must stay inside {folder}")
    if path.suffix != ".py" or not all(part.isidentifier() for part in path.with_suffix("").parts):
        raise ManifestError(file, field, f"{python.path!r} must be a Python module such as 'runner.py'")
    if not (folder / path).is_file():
        raise ManifestError(file, field, f"there is no file {python.path!r}")
    if not python.attr.isidentifier():
        raise ManifestError(file, "execution.python.attr", f"{python.attr!r} must be the name of a class")
    return RunnerCode(folder, ".".join(path.with_suffix("").parts), python.attr, package)


def _locate_program(file: Path, command: list[Argument], environment: list[VariableName]) -> RunnerProgram:
    folder, program = file.parent.resolve(), command[0]
    for index, argument in enumerate(command):
        if ".." in PurePosixPath(argument).parts or (_exists(folder, argument) and not _is_inside(folder, argument)):
            raise ManifestError(file, f"execution.command[{index}]", f"{argument!r} must stay inside {folder}")
    if "/" in program and not (folder / program).is_file():
        reason = f"there is no file {program!r}; a program on the PATH is named without a slash"
        raise ManifestError(file, "execution.command[0]", reason)
    return RunnerProgram(folder, tuple(command), tuple(environment))


def _exists(folder: Path, path: str) -> bool:
    try:
        return (folder / path).exists()
    except OSError:
        # Too long for a path, so it is another kind of argument.
        return False


def _is_inside(folder: Path, path: str) -> bool:
    # Resolved, so that neither `..` nor a link leads out of the folder.
    return (folder / path).resolve().is_relative_to(folder)
