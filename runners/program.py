"""What is executed for a runner that is a program of its own."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunnerProgram:
    """A command that speaks the lines of docs/subprocess-runners.md.

    Attributes:
        folder: resolved folder of the manifest; the program's working directory.
        command: program and arguments. A program without a slash is looked up in `PATH`.
        environment: names of variables of the worker that it gets besides the usual ones.
    """

    folder: Path
    command: tuple[str, ...]
    environment: tuple[str, ...] = ()
