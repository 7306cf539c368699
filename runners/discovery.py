"""Finds runners: in packages that are announced by entry points, and in folders."""

import importlib.util
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

import structlog

from runners.errors import DiscoveryFailed, ManifestError
from runners.manifest import MANIFEST_FILE, DiscoveredRunner, load_manifest

ENTRY_POINT_GROUP: Final = "runhost.runners"

logger = structlog.get_logger(__name__)


def discover(folders: Sequence[Path] = (), *, packages: Sequence[EntryPoint] | None = None) -> list[DiscoveredRunner]:
    """Find all runners that this process can execute.

    A root is a folder, or the folder of a package. A runner is a folder with a `runner.yaml`: a root itself,
    or a folder directly inside it. Nothing of a runner's code is imported. A runner that cannot be used costs
    a warning and is left out (HOST 5, H-R4); of two with the same id the first one stays.

    Args:
        folders: roots besides the packages.
        packages: entry points whose values name packages; those of group `runhost.runners` if None.

    Raises:
        DiscoveryFailed: one of `folders` is no readable folder.
    """
    found: dict[str, DiscoveredRunner] = {}
    for runner in (*_in_packages(packages), *_in_folders(folders)):
        first = found.setdefault(runner.discovery.manifest.id, runner)
        if first is not runner:
            _skip(runner.file, f"{first.discovery.manifest.id!r} is already defined in {first.file}")
    return list(found.values())


def _in_packages(packages: Sequence[EntryPoint] | None) -> Iterator[DiscoveredRunner]:
    points = sorted(entry_points(group=ENTRY_POINT_GROUP)) if packages is None else packages
    for point in points:
        root = _package_folder(point)
        if root is not None:
            yield from _in_root(root, point.module)


def _package_folder(point: EntryPoint) -> Path | None:
    try:
        spec = importlib.util.find_spec(point.module)
    except Exception as error:  # noqa: BLE001 - imports the packages above it, whose code may raise anything
        reason = f"{type(error).__name__} while it was imported"
    else:
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
        reason = "there is no such package"
    logger.warning("runners.package_skipped", entry_point=point.name, package=point.module, reason=reason)
    return None


def _in_folders(folders: Sequence[Path]) -> Iterator[DiscoveredRunner]:
    for folder in folders:
        yield from _in_root(folder, None)


def _in_root(root: Path, package: str | None) -> Iterator[DiscoveredRunner]:
    try:
        inside = sorted(root.iterdir())
    except OSError as error:
        raise DiscoveryFailed(f"runner folder {str(root)!r} cannot be read: {error.strerror}") from error
    manifests = [file for folder in (root, *inside) if (file := folder / MANIFEST_FILE).is_file()]
    if not manifests:
        logger.warning("runners.none_found", folder=str(root), expected=MANIFEST_FILE)
    for file in manifests:
        folder_package = package if package is None or file.parent == root else f"{package}.{file.parent.name}"
        try:
            yield load_manifest(file, folder_package)
        except ManifestError as error:
            _skip(file, f"{error.field}: {error.reason}" if error.field else error.reason)


def _skip(file: Path, reason: str) -> None:
    logger.warning("runner.skipped", file=str(file), reason=reason)
