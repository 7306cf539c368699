"""Writes runner folders for tests."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "AgentRunner",
    "metadata": {
        "author": "acme",
        "plugin": "echo",
        "name": "default",
        "version": "1.2",
        "label": {"en_US": "Echo", "zh_Hans": "回声"},
        "description": {"en_US": "Says it again"},
    },
    "spec": {
        "config": [{"name": "times", "type": "integer", "default": 1}],
        "capabilities": {"streaming": True},
        "permissions": {"history": ["page"]},
    },
    "execution": {"python": {"path": "runner.py", "attr": "Echo"}},
}

CODE = """
from runhost.sdk import AgentRunner, results


class Echo(AgentRunner):
    async def run(self, ctx):
        yield results.completed(ctx)
"""


def manifest_with(path: str, value: object) -> dict[str, Any]:
    """The manifest above with one field changed, or removed by None; `path` is dotted."""
    manifest = deepcopy(MANIFEST)
    *parents, name = path.split(".")
    target = manifest
    for parent in parents:
        target = target[parent]
    if value is None:
        del target[name]
    else:
        target[name] = value
    return manifest


def write_runner(folder: Path, manifest: object = MANIFEST, code: str = CODE) -> Path:
    """Write a runner's folder; returns the manifest file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "runner.py").write_text(code)
    file = folder / "runner.yaml"
    file.write_text(yaml.safe_dump(manifest, allow_unicode=True), encoding="utf-8")
    return file


def write_named(root: Path, name: str) -> Path:
    """Write the runner `plugin:acme/<name>/default` into a folder of that name."""
    return write_runner(root / name, manifest_with("metadata.plugin", name))
