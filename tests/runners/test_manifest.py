"""Reading `runner.yaml`: what it becomes, and errors that name file and field."""

from pathlib import Path

import pytest

from runners.errors import ManifestError
from runners.manifest import MAX_MANIFEST_BYTES, load_manifest
from tests.runners.manifests import manifest_with, write_runner


def test_manifest_becomes_a_discovery(tmp_path: Path) -> None:
    found = load_manifest(write_runner(tmp_path))
    discovery, manifest = found.discovery, found.discovery.manifest
    assert (discovery.plugin_author, discovery.plugin_name, discovery.runner_name) == ("acme", "echo", "default")
    assert discovery.plugin_version == "1.2"
    assert manifest.id == "plugin:acme/echo/default"
    assert manifest.label == {"en_US": "Echo", "zh_Hans": "回声"}
    assert manifest.description == discovery.runner_description == {"en_US": "Says it again"}
    assert manifest.capabilities == discovery.capabilities
    assert manifest.capabilities.streaming
    assert manifest.permissions.history == ["page"]
    assert [item.name for item in discovery.config] == ["times"]
    assert (found.code.folder, found.code.module, found.code.attr) == (tmp_path.resolve(), "runner", "Echo")


def test_missing_label_is_the_name(tmp_path: Path) -> None:
    found = load_manifest(write_runner(tmp_path, manifest_with("metadata.label", None)))
    assert found.discovery.manifest.label == {"en_US": "default"}


def test_spec_may_be_missing(tmp_path: Path) -> None:
    found = load_manifest(write_runner(tmp_path, manifest_with("spec", None)))
    assert not found.discovery.manifest.capabilities.streaming
    assert found.discovery.config == []


@pytest.mark.parametrize(
    ("path", "value", "field", "reason"),
    [
        pytest.param("apiVersion", "v9", "apiVersion", "'v1'", id="other-version"),
        pytest.param("kind", "Tool", "kind", "'AgentRunner'", id="other-kind"),
        pytest.param("metadata.author", None, "metadata.author", "required", id="no-author"),
        pytest.param("metadata.name", "", "metadata.name", "at least 1", id="empty-name"),
        pytest.param("metadata.plugin", "a/b", "metadata", "three non-empty segments", id="slash-in-name"),
        pytest.param("metadata.version", 1.2, "metadata.version", "valid string", id="version-is-a-number"),
        pytest.param("metadata.label", "Echo", "metadata.label", "dictionary", id="label-without-locale"),
        pytest.param("spec.capabilities", {"streming": True}, "spec.capabilities.streming", "not permitted", id="typo"),
        pytest.param("spec.permissions", {"tools": ["run"]}, "spec.permissions.tools[0]", "'call'", id="operation"),
        pytest.param("spec.config", {"a": 1}, "spec.config", "valid list", id="form-is-no-list"),
        pytest.param("spec.config", [{"name": "x"}], "spec.config[0].type", "required", id="item-without-type"),
        pytest.param("permissions", {}, "permissions", "not permitted", id="field-in-wrong-place"),
        pytest.param("execution", None, "execution", "required", id="no-execution"),
        pytest.param("execution.python.path", "../x.py", "execution.python.path", "inside", id="path-leaves"),
        pytest.param("execution.python.path", "/etc/x.py", "execution.python.path", "inside", id="absolute"),
        pytest.param("execution.python.path", "gone.py", "execution.python.path", "no file", id="no-such-file"),
        pytest.param("execution.python.path", "run.sh", "execution.python.path", "module", id="no-module"),
        pytest.param("execution.python.path", "a-b.py", "execution.python.path", "module", id="no-identifier"),
        pytest.param("execution.python.path", "", "execution.python.path", "module", id="empty-path"),
        pytest.param("execution.python.attr", "a.b", "execution.python.attr", "class", id="dotted-class"),
    ],
)
def test_error_names_file_and_field(tmp_path: Path, path: str, value: object, field: str, reason: str) -> None:
    file = write_runner(tmp_path, manifest_with(path, value))
    with pytest.raises(ManifestError) as caught:
        load_manifest(file)
    assert (caught.value.file, caught.value.field) == (file, field)
    assert reason in caught.value.reason
    assert str(caught.value).startswith(f"{file}: {field}: ")


def test_code_behind_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("")
    file = write_runner(tmp_path / "runner")
    (tmp_path / "runner" / "runner.py").unlink()
    (tmp_path / "runner" / "runner.py").symlink_to(outside)
    with pytest.raises(ManifestError, match="must stay inside"):
        load_manifest(file)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"a: [", "is no valid YAML", id="broken"),
        pytest.param(b"\xff\xfe\x00", "is no valid YAML", id="no-utf-8"),
        pytest.param(b"a: 2024-13-45", "is no valid YAML", id="no-such-day"),
        pytest.param(b"[" * 5_000, "is no valid YAML", id="too-deep"),
        pytest.param(b"!!python/object/apply:os.getcwd []", "is no valid YAML", id="wants-to-run-code"),
        pytest.param(b"", "valid dictionary", id="empty"),
        pytest.param(b"- a", "valid dictionary", id="list"),
        pytest.param(b"#" * (MAX_MANIFEST_BYTES + 1), f"exceeds {MAX_MANIFEST_BYTES} bytes", id="too-large"),
    ],
)
def test_file_that_is_no_manifest_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "runner.yaml"
    file.write_bytes(content)
    with pytest.raises(ManifestError, match=reason) as caught:
        load_manifest(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_manifest_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read: No such file"):
        load_manifest(tmp_path / "runner.yaml")
