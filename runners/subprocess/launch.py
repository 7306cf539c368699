"""Starts the program of a run behind its guardian, with a pipe for everything."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO

from runhost.sdk.wire import READ_BYTES, LineWriter
from runners.program import RunnerProgram
from runners.subprocess import guardian

_TERMINATE = b"T"
_KILL = b"K"


@dataclass(frozen=True)
class GuardedProgram:
    """A started guardian, and our ends of the pipes.

    Attributes:
        guardian: it ends last, when nothing of the program is left.
        lines: the program's standard input.
        output: its standard output.
        errors: its standard error.
        status: lines of the guardian, see there.
    """

    guardian: asyncio.subprocess.Process
    lines: LineWriter
    output: asyncio.StreamReader
    errors: asyncio.StreamReader
    status: asyncio.StreamReader
    _lifeline: FileIO
    _pipes: ExitStack

    def terminate(self) -> None:
        """Send SIGTERM to the program and its process group."""
        self._order(_TERMINATE)

    def kill(self) -> None:
        """Send SIGKILL to all that the program started, again and again until nothing is left."""
        self._order(_KILL)

    def close(self) -> None:
        """Close our ends; this too kills what is left."""
        self._pipes.close()

    def _order(self, order: bytes) -> None:
        # The guardian has ended: there is nobody left to signal.
        with suppress(BrokenPipeError):
            self._lifeline.write(order)


async def launch(program: RunnerProgram, environment: Mapping[str, str]) -> GuardedProgram:
    """Start a program. Whether it can be executed is told by the status.

    Raises:
        OSError: its folder is gone, or the system has no more processes or descriptors.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        stdin, lines = _pipe(theirs, ours)
        output, stdout = _pipe(ours, theirs)
        errors, stderr = _pipe(ours, theirs)
        status, status_end = _pipe(ours, theirs)
        lifeline_end, lifeline = _pipe(theirs, ours)
        handed_on = (lifeline_end.fileno(), status_end.fileno())
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", guardian.__file__, *map(str, handed_on), *program.command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=handed_on,
            cwd=program.folder,
            env=environment,
            # Ctrl-C at the terminal reaches the worker only, which stops its runs in order.
            start_new_session=True,
        )
        os.set_blocking(lifeline.fileno(), False)
        return GuardedProgram(
            guardian=process,
            lines=await _writer(lines, ours),
            output=await _reader(output, ours),
            errors=await _reader(errors, ours),
            status=await _reader(status, ours),
            _lifeline=lifeline,
            _pipes=ours.pop_all(),
        )


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[FileIO, FileIO]:
    """Make a pipe: an end to read and one to write, which are closed by two different stacks."""
    read_end, write_end = os.pipe()
    return reading.enter_context(FileIO(read_end, "rb")), writing.enter_context(FileIO(write_end, "wb"))


async def _reader(pipe: FileIO, pipes: ExitStack) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=READ_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    pipes.callback(transport.close)
    return reader


async def _writer(pipe: FileIO, pipes: ExitStack) -> LineWriter:
    _, writer = await asyncio.get_running_loop().connect_write_pipe(LineWriter, pipe)
    pipes.callback(writer.abort)
    return writer
