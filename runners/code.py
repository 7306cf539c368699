"""Imports the class behind a manifest."""

import importlib
from dataclasses import dataclass
from pathlib import Path

from runhost.sdk import AgentRunner
from runhost.sdk.loading import adopt_folder
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
        module = importlib.import_module(f"{self.package or adopt_folder(self.folder)}.{self.module}")
        runner_class = getattr(module, self.attr, None)
        if runner_class is None:
            raise InvalidRunner(runner_id, f"{module.__file__} has no {self.attr!r}")
        if not isinstance(runner_class, type) or not issubclass(runner_class, AgentRunner):
            raise InvalidRunner(runner_id, f"{self.attr!r} in {module.__file__} must be a subclass of AgentRunner")
        return runner_class
