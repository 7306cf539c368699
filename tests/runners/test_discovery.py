"""Finding runners in packages and folders; a bad one costs a warning and nothing else (H-R4)."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from runners.discovery import ENTRY_POINT_GROUP, discover
from runners.errors import DiscoveryFailed
from runners.manifest import DiscoveredRunner
from tests.runners.manifests import MANIFEST, manifest_with, write_named, write_runner

NO_PACKAGES: list[EntryPoint] = []


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as captured:
        yield captured


def ids_of(found: list[DiscoveredRunner]) -> list[str]:
    return [runner.discovery.manifest.id for runner in found]


def entry_point(package: str) -> EntryPoint:
    return EntryPoint(name="acme", value=package, group=ENTRY_POINT_GROUP)


@pytest.fixture
def package_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_folders_are_searched_one_level_deep(tmp_path: Path, logs: list[EventDict]) -> None:
    write_named(tmp_path, "one")
    write_named(tmp_path, "two")
    write_named(tmp_path / "two" / "deeper", "three")
    (tmp_path / "README.md").write_text("no runner")
    assert ids_of(discover([tmp_path], packages=NO_PACKAGES)) == [
        "plugin:acme/one/default",
        "plugin:acme/two/default",
    ]
    assert logs == []


def test_folder_may_be_a_runner_itself(tmp_path: Path) -> None:
    write_runner(tmp_path)
    assert ids_of(discover([tmp_path], packages=NO_PACKAGES)) == ["plugin:acme/echo/default"]


def test_bad_runner_costs_one_warning(tmp_path: Path, logs: list[EventDict]) -> None:
    bad = write_runner(tmp_path / "bad", manifest_with("kind", "Tool"))
    write_named(tmp_path, "good")
    assert ids_of(discover([tmp_path], packages=NO_PACKAGES)) == ["plugin:acme/good/default"]
    (log,) = logs
    assert (log["event"], log["log_level"], log["file"]) == ("runner.skipped", "warning", str(bad))
    assert log["reason"].startswith("kind: ")


def test_second_runner_of_the_same_id_is_skipped(tmp_path: Path, logs: list[EventDict]) -> None:
    first = write_runner(tmp_path / "a")
    second = write_runner(tmp_path / "b")
    (found,) = discover([tmp_path], packages=NO_PACKAGES)
    assert found.file == first
    (log,) = logs
    assert log["file"] == str(second)
    assert str(first) in log["reason"]


def test_nothing_is_imported(tmp_path: Path) -> None:
    write_runner(tmp_path, code="raise RuntimeError")
    assert len(discover([tmp_path], packages=NO_PACKAGES)) == 1


def test_missing_folder_fails_the_discovery(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryFailed, match="nowhere"):
        discover([tmp_path / "nowhere"], packages=NO_PACKAGES)


def test_folder_without_runners_is_warned_about(tmp_path: Path, logs: list[EventDict]) -> None:
    assert discover([tmp_path], packages=NO_PACKAGES) == []
    (log,) = logs
    assert (log["event"], log["folder"]) == ("runners.none_found", str(tmp_path))


def test_package_is_found_by_entry_point(package_root: Path) -> None:
    write_named(package_root / "acme_runners", "one")
    (package_root / "acme_runners" / "__init__.py").write_text("")
    (found,) = discover(packages=[entry_point("acme_runners")])
    assert found.code.package == "acme_runners.one"
    assert found.code.load("any").__module__ == "acme_runners.one.runner"


def test_package_may_be_a_runner_itself(package_root: Path) -> None:
    write_runner(package_root / "acme_echo")
    (found,) = discover(packages=[entry_point("acme_echo")])
    assert found.code.package == "acme_echo"
    assert found.code.load("any").__module__ == "acme_echo.runner"


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        pytest.param("no_such_package", "there is no such package", id="missing"),
        pytest.param("no_such_package.deeper", "ModuleNotFoundError while it was imported", id="parent-missing"),
        pytest.param("acme_broken.deeper", "ZeroDivisionError while it was imported", id="parent-raises"),
        pytest.param("acme_module", "there is no such package", id="module-without-folder"),
    ],
)
def test_unusable_package_costs_one_warning(
    package_root: Path, logs: list[EventDict], package: str, reason: str
) -> None:
    (package_root / "acme_module.py").write_text("")
    (package_root / "acme_broken").mkdir()
    (package_root / "acme_broken" / "__init__.py").write_text("1 / 0")
    write_named(package_root / "acme_good", "good")
    found = discover(packages=[entry_point(package), entry_point("acme_good")])
    assert ids_of(found) == ["plugin:acme/good/default"]
    (log,) = logs
    assert (log["event"], log["package"], log["reason"]) == ("runners.package_skipped", package, reason)


def test_official_runners_are_announced() -> None:
    assert "plugin:runhost/scripted/default" in ids_of(discover())


def test_modules_of_a_folder_import_each_other(tmp_path: Path) -> None:
    write_runner(
        tmp_path / "one",
        code="from .words import WORD\nfrom runhost.sdk import AgentRunner\n"
        "class Echo(AgentRunner):\n    word = WORD\n",
    )
    (tmp_path / "one" / "words.py").write_text("WORD = 'one'")
    (tmp_path / "one" / "__init__.py").write_text("LOADED = True")
    (found,) = discover([tmp_path], packages=NO_PACKAGES)
    assert getattr(found.code.load("any"), "word") == "one"  # noqa: B009 - the class is made by the test


def test_folders_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        manifest = manifest_with("metadata.author", parent)
        write_runner(
            tmp_path / parent / "echo",
            manifest,
            f"from runhost.sdk import AgentRunner\nclass Echo(AgentRunner):\n    parent = {parent!r}\n",
        )
    found = discover([tmp_path / "a", tmp_path / "b"], packages=NO_PACKAGES)
    assert [getattr(runner.code.load("any"), "parent") for runner in found] == ["a", "b"]  # noqa: B009 - likewise


def test_package_of_a_folder_that_fails_is_imported_again(tmp_path: Path) -> None:
    write_runner(tmp_path, MANIFEST)
    init = tmp_path / "__init__.py"
    init.write_text("1 / 0")
    (found,) = discover([tmp_path], packages=NO_PACKAGES)
    with pytest.raises(ZeroDivisionError):
        found.code.load("any")
    init.write_text("MENDED = True")
    package, _, _ = found.code.load("any").__module__.rpartition(".")
    assert sys.modules[package].MENDED
