"""Imports the class behind a manifest."""

import importlib
import importlib.util
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from runhost.sdk import AgentRunner
from runners.errors import InvalidRunner


@dataclass(frozen=True, slots=True)
class RunnerCode:
    """Where the class of a runner is.

    Attributes:
        folder: resolved folder of the manifest.
        module: dotted name of the module inside the folder.
        attr: name of the class in the module.
        package: name under which the folder can be imported; None for a folder that is no package.
    """

    folder: Path
    module: str
    attr: str
    package: str | None = None

    def load(self, runner_id: str) -> type[AgentRunner]:
        """Import the module and return the class. Runs code of the runner, so it may raise anything.

        Raises:
            InvalidRunner: the class is missing, or is no `AgentRunner`.
        """
        module = importlib.import_module(f"{self.package or _adopt(self.folder)}.{self.module}")
        runner_class = getattr(module, self.attr, None)
        if runner_class is None:
            raise InvalidRunner(runner_id, f"{module.__file__} has no {self.attr!r}")
        if not isinstance(runner_class, type) or not issubclass(runner_class, AgentRunner):
            raise InvalidRunner(runner_id, f"{self.attr!r} in {module.__file__} must be a subclass of AgentRunner")
        return runner_class


def _adopt(folder: Path) -> str:
    """Make a folder importable as a package of its own name, so that its modules can import each other.

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
