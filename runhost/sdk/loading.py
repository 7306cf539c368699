"""Imports the code of a runner out of its folder."""

import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType


def adopt_folder(folder: Path) -> str:
    """Make a folder importable as a package of its own name, so that its modules can import each other.

    Runs the folder's `__init__.py` if it has one, so it may raise anything.

    Returns:
        The name, unique by the path: two folders of the same name do not meet.
    """
    name = f"runhost_runner_{folder.name.replace('.', '_')}_{zlib.crc32(bytes(folder)):08x}"
    if name in sys.modules:
        return name
    init = folder / "__init__.py"
    if not init.is_file():
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
        return name
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{init} cannot be imported")
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    loaded = False
    try:
        spec.loader.exec_module(package)
        loaded = True
    finally:
        if not loaded:
            del sys.modules[name]
    return name
