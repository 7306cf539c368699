"""Programs that crash, babble, or cannot be started: each ends with an error that says what happened."""

import json
import sys
from pathlib import Path

import pytest

from runhost.protocol import RunFailureCode
from runners.errors import InvalidRunner, ProtocolBroken, RunnerCrashed, RunnerError
from runners.program import RunnerProgram
from runners.subprocess.session import ProgramSession
from runners.transport import Diagnosable, StopReason
from tests.eventually import eventually
from tests.processes import is_alive
from tests.runners.contexts import read_until_error
from tests.runners.programs import program_of, read_all, start_program, start_shell


async def error_of(session: ProgramSession) -> RunnerError:
    _, error = await read_until_error(session)
    assert await session.stop(StopReason.ENDED, 5) is None
    return error


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param("Hello World!", "a line that is no JSON: 'Hello World!'", id="text"),
        pytest.param('{"type":"resu', "a line that is no JSON", id="half"),
        pytest.param("[" * 10_000, "a line that is no JSON", id="too-deep"),
        pytest.param("9" * 5_000, "a line that is no JSON: '9999", id="endless-number"),
        pytest.param("42", "a line that is no JSON object: '42'", id="number"),
        pytest.param('{"result": 1}', "a message of a type that there is not", id="no-type"),
        pytest.param('{"type": "results"}', "a message of a type that there is not", id="other-type"),
        pytest.param('{"type": ["result"]}', "a message of a type that there is not", id="type-is-a-list"),
        pytest.param('{"type": "result"}', "a result message without a result", id="no-result"),
        pytest.param('{"type": "call", "method": "a"}', "no whole number", id="call-without-id"),
        pytest.param('{"type": "call", "id": "1", "method": "a"}', "no whole number", id="id-is-text"),
        pytest.param('{"type": "call", "id": true, "method": "a"}', "no whole number", id="id-is-a-boolean"),
        pytest.param('{"type": "call", "id": -1, "method": "a"}', "no whole number", id="id-is-negative"),
        pytest.param('{"type": "call", "id": 1}', "without the name of a method", id="call-without-method"),
        pytest.param('{"type": "call", "id": 1, "method": "a", "params": []}', "are no object", id="params-are-a-list"),
    ],
)
async def test_babble_is_a_protocol_failure(tmp_path: Path, output: str, reason: str) -> None:
    session = start_program(program_of(tmp_path, f"print({output!r}, flush=True)\ntime.sleep(60)"))
    error = await error_of(session)
    assert isinstance(error, ProtocolBroken)
    assert error.code == RunFailureCode.RUNNER_PROTOCOL
    assert reason in str(error)
    assert len(str(error)) < 700


async def test_results_before_babble_are_handed_over(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, 'result("a.b")\nprint("\\x00\\xff")'))
    seen, error = await read_until_error(session)
    assert len(seen) == 1
    assert "no JSON: '\\x00" in str(error)
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_second_call_with_an_open_id_is_a_protocol_failure(tmp_path: Path) -> None:
    error = await error_of(start_program(program_of(tmp_path, 'call(1, "wait")\ncall(1, "wait")')))
    assert "a call with id 1, which is still open" in str(error)


@pytest.mark.parametrize("end", [pytest.param("", id="endless"), pytest.param("\n", id="ended")])
async def test_line_above_the_limit_is_a_protocol_failure(tmp_path: Path, end: str) -> None:
    code = f'sys.stdout.write("x" * 300_000 + {end!r})\nsys.stdout.flush()\ntime.sleep(60)'
    error = await error_of(start_program(program_of(tmp_path, code), line_bytes=200_000))
    assert isinstance(error, ProtocolBroken)
    assert "a line is longer than 200000 bytes: 'xxx" in str(error)
    assert len(str(error)) < 700


async def test_endless_line_ends_with_its_program(tmp_path: Path) -> None:
    """Memory stays within the limit: what comes after it is dropped, and the program is ended."""
    code = 'while True:\n    sys.stdout.write("x" * 65_536)'
    error = await error_of(start_program(program_of(tmp_path, code), line_bytes=200_000))
    assert isinstance(error, ProtocolBroken)


async def test_last_line_without_an_end_is_named(tmp_path: Path) -> None:
    error = await error_of(start_shell(tmp_path, """printf '{"type":"result","result":1}'"""))
    assert "a last line without its end: '{" in str(error)


async def test_output_closed_by_a_program_that_goes_on_is_named(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, "os.close(1)\ntime.sleep(60)"), linger_seconds=0.1)
    assert "closed its standard output and did not end" in str(await error_of(session))


async def test_babble_after_the_last_result_is_not_wanted(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, 'result("run.completed")\nprint("bye")\nsys.exit(1)'))
    assert len(await read_all(session)) == 1
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_crash_shows_exit_code_and_the_end_of_standard_error(tmp_path: Path) -> None:
    code = 'sys.stderr.write("x" * 3_000)\nresult("a.b")\nraise ValueError("no such thing")'
    session = start_program(program_of(tmp_path, code))
    seen, error = await read_until_error(session)
    assert len(seen) == 1
    assert isinstance(error, RunnerCrashed)
    assert error.type_name == "exit code 1"
    assert str(error).startswith("exit code 1: xxx")
    assert str(error).endswith("ValueError: no such thing")
    assert len(error.message) <= 1_500
    await session.stop(StopReason.ENDED, 5)


async def test_crash_by_a_signal_names_it(tmp_path: Path) -> None:
    error = await error_of(start_program(program_of(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")))
    assert str(error) == "SIGSEGV: it wrote nothing to its standard error"


async def test_failure_that_was_reported_is_no_crash(tmp_path: Path) -> None:
    code = 'result("run.failed", code="my.code", error="sorry")\nsys.exit(3)'
    session = start_program(program_of(tmp_path, code))
    (result,) = await read_all(session)
    assert result["data"]["code"] == "my.code"
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_diagnostics_keep_the_end_of_standard_error(tmp_path: Path) -> None:
    code = 'sys.stderr.write("y" * 1_000_000 + "the end")\nsys.exit(4)'
    session = start_program(program_of(tmp_path, code))
    await error_of(session)
    diagnostics = session.diagnostics()
    assert (diagnostics["exit"], diagnostics["stderr_bytes"]) == ("exit code 4", 1_000_007)
    assert len(str(diagnostics["stderr"])) == 64 * 1024
    assert str(diagnostics["stderr"]).endswith("yythe end")
    json.dumps(diagnostics)


async def test_quiet_program_that_ended_well_has_no_diagnostics(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, 'result("run.completed")'))
    await read_all(session)
    assert await session.stop(StopReason.ENDED, 5) is None
    assert isinstance(session, Diagnosable)
    assert session.diagnostics() == {}


async def test_standard_error_is_logged_as_a_count_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """INV-9: what a program writes may quote users, on whichever of its outputs."""
    code = 'sys.stderr.write("secret-one")\nsys.stderr.flush()\nprint("secret-two")\nsys.exit(1)'
    await error_of(start_program(program_of(tmp_path, code)))
    logged = caplog.text + "".join(capsys.readouterr())
    assert "stderr_bytes" in logged
    assert "secret" not in logged


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        pytest.param(("no-such-program",), "'no-such-program' on the worker's PATH", id="not-on-the-path"),
        pytest.param(("./gone",), "No such file or directory", id="gone"),
        pytest.param(("./plain",), "Permission denied", id="not-executable"),
        pytest.param((".",), "cannot be executed", id="folder"),
        pytest.param(("./empty",), "Exec format error", id="no-format"),
    ],
)
async def test_program_that_cannot_be_executed_is_named(tmp_path: Path, command: tuple[str, ...], reason: str) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "empty").write_bytes(b"\x00\x01")
    (tmp_path / "empty").chmod(0o755)
    error = await error_of(start_program(RunnerProgram(tmp_path, command)))
    assert isinstance(error, InvalidRunner)
    assert reason in str(error)
    assert "plugin:test/programs/default" in str(error)


async def test_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    error = await error_of(start_program(RunnerProgram(tmp_path / "gone", (sys.executable, "-V"))))
    assert isinstance(error, InvalidRunner)
    assert "No such file or directory" in str(error)


async def test_program_that_kills_its_guardian_ends_with_it(tmp_path: Path) -> None:
    session = start_program(program_of(tmp_path, "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)"))
    error = await error_of(session)
    assert "ended with its guardian" in str(error)
    pid = session.pid
    assert pid is not None
    await eventually(lambda: not is_alive(pid))
