"""What a program sees of the worker's environment: what is named, and nothing else (SECURITY G-4)."""

from pathlib import Path

import pytest

from runners.program import RunnerProgram
from runners.subprocess.environment import may_ask_for, program_environment
from runners.transport import StopReason
from tests.runners.programs import program_of, read_all, start_program

WORKER = {
    "PATH": "/usr/bin",
    "HOME": "/home/worker",
    "LANG": "de_DE.UTF-8",
    "LC_TIME": "C",
    "TZ": "UTC",
    "TMPDIR": "/srv/scratch",
    "RUNHOST_DATABASE_URL": "postgresql://secret",
    "DATABASE_URL": "postgresql://secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "LD_PRELOAD": "/srv/evil.so",
    "PYTHONPATH": "/srv",
    "ACME_API_KEY": "secret",
    "RUNNER_REGION": "eu",
}


def test_program_gets_the_usual_variables_only() -> None:
    assert program_environment((), WORKER) == {
        "PATH": "/usr/bin",
        "HOME": "/home/worker",
        "LANG": "de_DE.UTF-8",
        "LC_TIME": "C",
        "TZ": "UTC",
        "TMPDIR": "/srv/scratch",
    }


def test_program_gets_what_its_manifest_names() -> None:
    found = program_environment(("ACME_API_KEY", "RUNNER_REGION", "RUNNER_GONE"), WORKER)
    assert set(found) - set(program_environment((), WORKER)) == {"ACME_API_KEY", "RUNNER_REGION"}


def test_names_that_nobody_may_ask_for_are_left_out_even_here() -> None:
    assert program_environment(("RUNHOST_DATABASE_URL", "LD_PRELOAD"), WORKER) == program_environment((), WORKER)


def test_locale_is_utf_8_where_the_worker_has_none() -> None:
    assert program_environment((), {}) == {"LANG": "C.UTF-8"}


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("API_KEY", True),
        ("ACME_API_KEY", True),
        ("RUNNER_MODE", True),
        ("HTTPS_PROXY", True),
        ("no_proxy", True),
        ("SSL_CERT_FILE", True),
        ("RUNHOST_API_KEY", False),
        ("RUNHOST_DATABASE_URL", False),
        ("DATABASE_URL", False),
        ("PGPASSWORD", False),
        ("AWS_SECRET_ACCESS_KEY", False),
        ("GITHUB_TOKEN", False),
        ("PATH", False),
        ("HOME", False),
        ("LD_PRELOAD", False),
        ("NODE_OPTIONS", False),
        ("MY_API_KEY\n", False),
        ("my_api_key", False),
        ("RUNNER_", False),
        ("", False),
    ],
)
def test_names_that_a_manifest_may_ask_for(name: str, may: bool) -> None:
    assert may_ask_for(name) is may


async def test_started_program_sees_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNHOST_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("RUNNER_REGION", "eu")
    program = program_of(tmp_path, 'result("seen", **os.environ)')
    session = start_program(RunnerProgram(program.folder, program.command, ("RUNNER_REGION", "SOME_TOKEN")))
    (result,) = await read_all(session)
    assert result["data"]["RUNNER_REGION"] == "eu"
    names = {name for name in result["data"] if not name.startswith("LC_")}
    assert names <= {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "RUNNER_REGION"}
    assert await session.stop(StopReason.ENDED, 5) is None
