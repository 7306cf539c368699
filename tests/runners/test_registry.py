"""The registry of a worker: lookups, refreshing, instances (HOST 5, D-14, D-19)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from runhost.protocol import RunFailureCode
from runners.code import RunnerCode
from runners.discovery import discover
from runners.errors import RunnerNotAuthorized, RunnerNotFound
from runners.registry import RunnerRegistry
from tests.runners.bad_runners import SlowConstructor
from tests.runners.contexts import discovered, registry_of
from tests.runners.manifests import CODE, MANIFEST, manifest_with, write_named, write_runner

ECHO = "plugin:acme/echo/default"


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as captured:
        yield captured


def registry_of_folder(folder: Path) -> RunnerRegistry:
    return RunnerRegistry(partial(discover, [folder], packages=[]))


def test_descriptor_tells_what_the_manifest_says(tmp_path: Path) -> None:
    write_runner(tmp_path)
    descriptor = registry_of_folder(tmp_path).get(ECHO)
    assert (descriptor.id, descriptor.source, descriptor.plugin_id) == (ECHO, "plugin", "acme/echo")
    assert descriptor.plugin_version == "1.2"
    assert descriptor.label["en_US"] == "Echo"
    assert descriptor.capabilities.streaming
    assert descriptor.permissions.history == ["page"]
    assert descriptor.config_schema == [{"name": "times", "type": "integer", "default": 1}]


def test_descriptors_are_sorted_and_filtered_by_plugin(tmp_path: Path) -> None:
    for name in ("two", "one"):
        write_named(tmp_path, name)
    registry = registry_of_folder(tmp_path)
    assert [descriptor.plugin_name for descriptor in registry.descriptors()] == ["one", "two"]
    assert [descriptor.plugin_name for descriptor in registry.descriptors({"acme/two"})] == ["two"]
    assert registry.descriptors([]) == []


@pytest.mark.parametrize(
    "runner_id",
    [
        pytest.param("plugin:acme/other/default", id="unknown"),
        pytest.param("acme/echo/default", id="no-prefix"),
        pytest.param("plugin:acme/echo", id="two-segments"),
        pytest.param("", id="empty"),
    ],
)
def test_unknown_id_is_not_found(tmp_path: Path, runner_id: str) -> None:
    write_runner(tmp_path)
    with pytest.raises(RunnerNotFound) as caught:
        registry_of_folder(tmp_path).get(runner_id)
    assert caught.value.code == RunFailureCode.RUNNER_NOT_FOUND
    assert repr(runner_id) in str(caught.value)


def test_runner_of_another_plugin_is_not_authorized(tmp_path: Path) -> None:
    write_runner(tmp_path)
    registry = registry_of_folder(tmp_path)
    assert registry.get(ECHO, {"acme/echo"}).id == ECHO
    with pytest.raises(RunnerNotAuthorized, match="'acme/echo'"):
        registry.get(ECHO, {"acme/other"})


def test_manifest_with_another_id_than_its_address_is_skipped(logs: list[EventDict]) -> None:
    code = RunnerCode(Path(__file__).parent, "bad_runners", "Echo", "tests.runners")
    good, bad = discovered("Echo", code), discovered("Crash", code)
    bad = type(bad)(bad.file, bad.discovery.model_copy(update={"runner_name": "other"}), bad.code)
    registry = RunnerRegistry(lambda: [bad, good])
    assert [descriptor.runner_name for descriptor in registry.descriptors()] == ["Echo"]
    (log,) = logs
    assert log["event"] == "runner.skipped"
    assert "plugin:test/runners/other" in log["reason"]


def test_refresh_sees_new_and_removed_runners(tmp_path: Path) -> None:
    write_named(tmp_path, "one")
    registry = registry_of_folder(tmp_path)
    assert [descriptor.plugin_name for descriptor in registry.descriptors()] == ["one"]
    write_named(tmp_path, "two")
    (tmp_path / "one" / "runner.yaml").unlink()
    assert [descriptor.plugin_name for descriptor in registry.descriptors()] == ["one"]
    assert registry.refresh()
    assert [descriptor.plugin_name for descriptor in registry.descriptors()] == ["two"]


def test_failed_discovery_keeps_what_was_known(tmp_path: Path, logs: list[EventDict]) -> None:
    root = tmp_path / "runners"
    write_named(root, "echo")
    registry = registry_of_folder(root)
    assert registry.refresh()
    worked_at = registry.refreshed_at
    root.rename(tmp_path / "moved")
    assert not registry.refresh()
    assert registry.stale
    assert registry.refreshed_at == worked_at
    assert registry.get(ECHO).id == ECHO
    assert [log["event"] for log in logs] == ["runners.discovery_failed"]
    (tmp_path / "moved").rename(root)
    assert registry.refresh()
    assert not registry.stale


def test_discovery_that_never_worked_leaves_an_empty_stale_registry(tmp_path: Path) -> None:
    registry = registry_of_folder(tmp_path / "nowhere")
    assert registry.descriptors() == []
    assert registry.stale
    assert registry.refreshed_at is None


def test_instance_is_made_once_by_however_many_threads() -> None:
    SlowConstructor.made = 0
    runner = registry_of(SlowConstructor).registered("plugin:test/runners/SlowConstructor")
    with ThreadPoolExecutor(8) as threads:
        instances = list(threads.map(lambda _: runner.instance(), range(32)))
    assert len({id(instance) for instance in instances}) == SlowConstructor.made == 1
    assert instances[0].manifest == runner.source.discovery.manifest


def test_refresh_keeps_the_instance_of_an_unchanged_runner(tmp_path: Path) -> None:
    write_runner(tmp_path)
    registry = registry_of_folder(tmp_path)
    before = registry.registered(ECHO).instance()
    registry.refresh()
    assert registry.registered(ECHO).instance() is before


def test_changed_manifest_makes_a_new_instance(tmp_path: Path) -> None:
    write_runner(tmp_path, MANIFEST, CODE)
    registry = registry_of_folder(tmp_path)
    before = registry.registered(ECHO).instance()
    write_runner(tmp_path, manifest_with("metadata.version", "1.3"), CODE)
    registry.refresh()
    after = registry.registered(ECHO).instance()
    assert after is not before
    assert registry.get(ECHO).plugin_version == "1.3"
