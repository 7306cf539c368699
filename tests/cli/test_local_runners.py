from pathlib import Path

import pytest
import typer

from runhost.cli.local_runners import find_runner, read_config
from runners.in_process import InProcessTransport
from runners.routing import RoutingTransport
from tests.runners.manifests import manifest_with, write_named, write_runner

SCRIPTED = "plugin:runhost/scripted/default"


def refusal_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(typer.Exit) as ended:
        find_runner(name)
    assert ended.value.exit_code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", [".", "runner.yaml"], ids=["folder", "manifest"])
def test_runner_is_found_by_its_place(tmp_path: Path, name: str) -> None:
    write_runner(tmp_path)
    assert find_runner(str(tmp_path / name)).descriptor.id == "plugin:acme/echo/default"


def test_runner_is_found_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_named(tmp_path, "blank")
    monkeypatch.setenv("RUNHOST_RUNNER_PATHS", str(tmp_path))
    assert find_runner(SCRIPTED).descriptor.id == SCRIPTED
    assert find_runner("plugin:acme/blank/default").descriptor.id == "plugin:acme/blank/default"


async def test_program_is_known_as_one(tmp_path: Path) -> None:
    manifest = manifest_with("execution", {"python": {"path": "runner.py", "attr": "Echo"}, "process": "separate"})
    write_runner(tmp_path / "program", manifest)
    write_runner(tmp_path / "class")
    assert find_runner(str(tmp_path / "program")).crosses_process
    assert not find_runner(str(tmp_path / "class")).crosses_process
    assert isinstance(find_runner(str(tmp_path / "class")).transport(), RoutingTransport | InProcessTransport)


def test_unknown_id_is_told_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal_of("plugin:acme/none/default", capsys)
    assert "which has: " in told
    assert SCRIPTED in told


def test_what_is_neither_id_nor_folder_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is neither a runner id, such as plugin:author/name/runner" in refusal_of("/no/such/folder", capsys)


def test_broken_manifest_is_told_with_its_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runner(tmp_path, manifest_with("metadata.author", None))
    assert "metadata.author: Field required" in refusal_of(str(tmp_path), capsys)


def test_folder_of_the_settings_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNHOST_RUNNER_PATHS", "/no/such/folder")
    assert "correct RUNHOST_RUNNER_PATHS" in refusal_of(SCRIPTED, capsys)


@pytest.mark.parametrize("text", ["greeting: Good day\n", '{"greeting": "Good day"}'], ids=["YAML", "JSON"])
def test_configuration_is_yaml_or_json(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert read_config(str(file)) == {"greeting": "Good day"}
    assert read_config(None) == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file"),
        (b"- one\n", "must hold one object"),
        (b"when: 2026-01-01\n", "must hold one object: when"),
        (b"{", "is no valid YAML"),
        (b"\xff\xff", "is no valid YAML"),
        (b"x" * (4 * 1024 * 1024 + 1), "exceeds 4194304 bytes"),
    ],
    ids=["missing", "list", "no JSON", "broken", "no text", "too large"],
)
def test_configuration_that_is_none_is_told(tmp_path: Path, content: bytes | None, told: str) -> None:
    file = tmp_path / "config.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(typer.BadParameter, match=told):
        read_config(str(file))
