"""`execution` in a manifest: classes, programs, and errors that name the field."""

import sys
from pathlib import Path
from typing import Any

import pytest

from runners.errors import InvalidRunner, ManifestError
from runners.manifest import load_manifest
from runners.program import RunnerProgram
from tests.runners.manifests import manifest_with, write_runner

PYTHON = {"path": "runner.py", "attr": "Echo"}


def executed(folder: Path, execution: dict[str, Any]) -> object:
    return load_manifest(write_runner(folder, manifest_with("execution", execution))).execution


def test_command_is_run_in_the_folder(tmp_path: Path) -> None:
    program = executed(tmp_path, {"command": ["python3", "runner.py", "--flag"], "environment": ["ACME_API_KEY"]})
    assert program == RunnerProgram(tmp_path.resolve(), ("python3", "runner.py", "--flag"), ("ACME_API_KEY",))


def test_program_may_lie_in_the_folder(tmp_path: Path) -> None:
    program = executed(tmp_path, {"command": ["./runner.py"], "process": "separate"})
    assert isinstance(program, RunnerProgram)
    assert program.command == ("./runner.py",)


def test_class_in_a_process_of_its_own_is_a_program(tmp_path: Path) -> None:
    program = executed(tmp_path, {"python": PYTHON, "process": "separate", "environment": ["RUNNER_MODE"]})
    assert isinstance(program, RunnerProgram)
    assert program.command == (sys.executable, "-P", "-m", "runhost.sdk.program", "runner.py:Echo")
    assert program.environment == ("RUNNER_MODE",)


def test_class_of_a_package_is_named_by_its_module(tmp_path: Path) -> None:
    file = write_runner(tmp_path, manifest_with("execution", {"python": PYTHON, "process": "separate"}))
    program = load_manifest(file, "acme.runners.echo").execution
    assert program.command[-1] == "acme.runners.echo.runner:Echo" if isinstance(program, RunnerProgram) else False


def test_class_stays_in_the_worker_when_told_so(tmp_path: Path) -> None:
    assert executed(tmp_path / "a", {"python": PYTHON, "process": "worker"}) != executed(
        tmp_path / "a", {"python": PYTHON, "process": "separate"}
    )


def test_program_has_no_class(tmp_path: Path) -> None:
    found = load_manifest(write_runner(tmp_path, manifest_with("execution", {"command": ["true"]})))
    with pytest.raises(InvalidRunner, match="a program of its own"):
        _ = found.code


@pytest.mark.parametrize(
    ("execution", "field", "reason"),
    [
        pytest.param({}, "execution", "either python or command", id="neither"),
        pytest.param({"python": PYTHON, "command": ["a"]}, "execution", "either python or command", id="both"),
        pytest.param({"command": []}, "execution.command", "at least 1", id="empty-command"),
        pytest.param({"command": "node runner.js"}, "execution.command", "valid list", id="command-is-text"),
        pytest.param({"command": [""]}, "execution.command[0]", "at least 1", id="empty-program"),
        pytest.param({"command": ["a\0b"]}, "execution.command[0]", "pattern", id="nul"),
        pytest.param({"command": ["./gone"]}, "execution.command[0]", "no file './gone'", id="no-such-file"),
        pytest.param({"command": ["../x"]}, "execution.command[0]", "must stay inside", id="program-above"),
        pytest.param({"command": ["/bin/sh"]}, "execution.command[0]", "must stay inside", id="absolute-program"),
        pytest.param({"command": ["/no/such"]}, "execution.command[0]", "no file", id="absolute-and-gone"),
        pytest.param({"command": ["sh", "a/../../x.sh"]}, "execution.command[1]", "must stay inside", id="above"),
        pytest.param({"command": ["sh", "/etc/passwd"]}, "execution.command[1]", "must stay inside", id="absolute"),
        pytest.param({"command": ["sh", "link"]}, "execution.command[1]", "must stay inside", id="link"),
        pytest.param({"command": ["a"], "process": "worker"}, "execution.process", "process of its own", id="process"),
        pytest.param({"python": PYTHON, "process": "thread"}, "execution.process", "'separate'", id="other-process"),
        pytest.param(
            {"python": PYTHON, "environment": ["API_KEY"]}, "execution.environment", "separate", id="shared-environment"
        ),
        pytest.param(
            {"command": ["a"], "environment": ["API_KEY", "RUNHOST_DATABASE_URL"]},
            "execution.environment[1]",
            "'RUNHOST_DATABASE_URL' is no variable that a runner may have",
            id="settings-of-the-host",
        ),
        pytest.param(
            {"python": {**PYTHON, "path": "../x.py"}, "process": "separate"},
            "execution.python.path",
            "must stay inside",
            id="class-above",
        ),
    ],
)
def test_error_names_the_field(tmp_path: Path, execution: dict[str, Any], field: str, reason: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ManifestError, match=r"runner\.yaml") as caught:
        executed(tmp_path, execution)
    assert caught.value.field == field
    assert reason in caught.value.reason
