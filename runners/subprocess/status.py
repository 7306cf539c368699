"""What a guardian tells of its program."""

import signal
from asyncio import StreamReader


class ProgramStatus:
    """Follows the lines of a guardian.

    Attributes:
        pid: process id of the program, and id of its process group; None before it runs.
        left: process ids of what does not die.
        refusal: error number with which the program could not be executed.
        exit: how it ended: `exit code 1`, `SIGKILL`; None while it runs, and where nobody knows.
        is_clean: whether it exited with 0.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        self.left: list[str] = []
        self.refusal: int | None = None
        self.exit: str | None = None
        self.is_clean = False

    async def follow(self, lines: StreamReader) -> None:
        """Take what the guardian tells until it ends."""
        while line := (await lines.readline()).decode():
            self._take(*line.split())

    def _take(self, kind: str, *facts: str) -> None:
        if kind == "started":
            self.pid, self.left = int(facts[0]), [facts[0]]
        elif kind == "left":
            self.left = list(facts)
        elif kind == "refused":
            self.refusal = int(facts[0])
        elif kind == "exited":
            self.exit, self.is_clean = f"exit code {facts[0]}", facts[0] == "0"
        else:
            self.exit = _signal_name(int(facts[0]))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
