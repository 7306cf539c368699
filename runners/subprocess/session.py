"""One run of a runner that is a program of its own."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from runhost.protocol import AgentRunContext, AgentRunnerManifest, JsonObject
from runhost.sdk.connection import HostConnection
from runhost.sdk.wire import MAX_LINE_BYTES, READ_BYTES, encode_line
from runners.errors import InvalidRunner, ProtocolBroken, RunnerCrashed, RunnerError
from runners.program import RunnerProgram
from runners.subprocess.calls import HostCalls
from runners.subprocess.environment import program_environment
from runners.subprocess.inbox import Inbox
from runners.subprocess.launch import GuardedProgram, launch
from runners.subprocess.output import ProgramOutput
from runners.subprocess.status import ProgramStatus
from runners.subprocess.tail import Tail
from runners.transport import Residual, StopReason

SHOWN_TAIL_CHARACTERS: Final = 1_500
"""What of the standard error stands in the text of a crash."""

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of runs in programs of their own.

    Attributes:
        buffered_results: results of one run that may wait before nothing more is read from its program.
        buffered_bytes: likewise, length of their lines.
        line_bytes: longest line.
        kept_error_bytes: end of the standard error that is kept.
        linger_seconds: how long a program may go on after it has closed its standard output.
        terminate_seconds: time between SIGTERM and SIGKILL.
        kill_seconds: how long it may take until nothing is left after SIGKILL.
    """

    buffered_results: int = 256
    buffered_bytes: int = 4 * 1024 * 1024
    line_bytes: int = MAX_LINE_BYTES
    kept_error_bytes: int = 64 * 1024
    linger_seconds: float = 5.0
    terminate_seconds: float = 1.0
    kill_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What is executed, and for what.

    Attributes:
        runner_id: the runner.
        manifest: its manifest, handed to the program.
        program: what to start.
        context: context of the run.
    """

    runner_id: str
    manifest: AgentRunnerManifest
    program: RunnerProgram
    context: AgentRunContext


class ProgramSession:
    """One run in a program; see `RunnerSession` for the contract. Starts the program when it is made."""

    def __init__(self, run: ProgramRun, host: HostConnection, limits: ProgramLimits) -> None:
        self._run = run
        self._host = host
        self._limits = limits
        self._inbox = Inbox(limits.buffered_results, limits.buffered_bytes)
        self._errors = Tail(limits.kept_error_bytes)
        self._status = ProgramStatus()
        self._guarded: GuardedProgram | None = None
        self._calls: HostCalls | None = None
        self._output: ProgramOutput | None = None
        self._stop_reason: StopReason | None = None
        self._fault: RunnerError | None = None
        self._gone = asyncio.Event()
        self.living = asyncio.create_task(self._live(), name=f"run-{run.context.run_id}")

    @property
    def gone(self) -> bool:
        """Whether the program and all that it started have ended."""
        return self._gone.is_set()

    @property
    def pid(self) -> int | None:
        """Process id of the program, and id of its process group; None before it runs."""
        return self._status.pid

    async def next_batch(self) -> list[object]:
        """Wait for results and take all that are there; empty at the end."""
        return await self._inbox.take()

    async def results(self) -> AsyncIterator[object]:
        """The results one by one."""
        while batch := await self.next_batch():
            for result in batch:
                yield result

    def diagnostics(self) -> JsonObject:
        """See `Diagnosable`: how the program ended and what it wrote to its standard error.

        Returns:
            `exit` (`exit code 1`, `SIGKILL`; null where it is not known), `stderr_bytes` (all of them), and `stderr`,
            its last 64 KiB. Empty when it wrote nothing, and exited with 0 or has not yet.
        """
        if (self._status.is_clean or self._status.exit is None) and not self._errors.total_bytes:
            return {}
        return {"exit": self._status.exit, "stderr_bytes": self._errors.total_bytes, "stderr": self._errors.text()}

    async def stop(self, reason: StopReason, grace_seconds: float) -> Residual | None:
        """Tell the program, wait, SIGTERM its group, SIGKILL all that it started; then say what is left."""
        self._ask(reason, grace_seconds)
        try:
            # A program that does not keep to the protocol has had its time.
            is_gone = await self._gone_within(0 if self._fault else grace_seconds)
            if not is_gone and self._guarded is not None:
                self._warn("runner.program_terminated")
                self._guarded.terminate()
                is_gone = await self._gone_within(self._limits.terminate_seconds)
            if not is_gone:
                self._kill()
                is_gone = await self._gone_within(self._limits.kill_seconds)
        except asyncio.CancelledError:
            self._kill()
            raise
        if is_gone:
            # Only what the pipes still hold has to be read. Shielded: a cancelled stop must not break that off.
            await asyncio.shield(self.living)
            return None
        self._warn("runner.program_left")
        self._inbox.end()
        return Residual(
            "process", f"processes of {self._run.runner_id} do not die: {', '.join(self._status.left) or '?'}"
        )

    def _ask(self, reason: StopReason, grace_seconds: float) -> None:
        if self._stop_reason is not None:
            return
        self._stop_reason = reason
        if self._guarded is None or self._calls is None:
            return
        if reason is StopReason.ENDED:
            self._calls.cancel()
            self._guarded.lines.close()
        else:
            message = {"type": "cancel", "reason": reason.value, "grace_seconds": grace_seconds}
            self._guarded.lines.send(encode_line(message))
            self._calls.cancel()
        if self.gone:
            self._inbox.lift_bounds()

    def _kill(self) -> None:
        if self._guarded is not None:
            self._guarded.kill()

    async def _gone_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        except TimeoutError:
            return self.gone
        return True

    async def _live(self) -> None:
        environment = program_environment(self._run.program.environment)
        try:
            guarded = await launch(self._run.program, environment)
        except OSError as error:
            self._fault = self._cannot_start(error.errno)
        else:
            self._guarded = guarded
            self._calls = HostCalls(self._host, guarded.lines, self._run.context.run_id)
            try:
                await self._play(guarded, self._calls)
            finally:
                self._calls.close()
                guarded.close()
        finally:
            self._gone.set()
            self._inbox.end(self._outcome())

    async def _play(self, guarded: GuardedProgram, calls: HostCalls) -> None:
        if self._stop_reason is not None:
            # Nobody wants it any more, and it has done nothing yet.
            guarded.kill()
        guarded.lines.send(encode_line(self._first_message()))
        output = self._output = ProgramOutput(self._inbox, calls, self._limits.line_bytes)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read_output(guarded, output))
            tasks.create_task(self._read_errors(guarded))
            tasks.create_task(self._watch(guarded, calls))
        logger.info(
            "runner.program_ended",
            runner_id=self._run.runner_id,
            run_id=self._run.context.run_id,
            exit=self._status.exit,
            stderr_bytes=self._errors.total_bytes,
        )

    def _first_message(self) -> JsonObject:
        return {
            "type": "run",
            "run_id": self._run.context.run_id,
            "runner_id": self._run.runner_id,
            "manifest": self._run.manifest.model_dump(mode="json"),
            "context": self._run.context.model_dump(mode="json"),
        }

    async def _watch(self, guarded: GuardedProgram, calls: HostCalls) -> None:
        """Follow the guardian until it has ended, and with it everything."""
        await self._status.follow(guarded.status)
        if self._status.refusal is not None:
            self._fault = self._cannot_start(self._status.refusal)
        if await guarded.guardian.wait() != 0 and self.pid is not None:
            # Somebody killed the guardian. The kernel ends the program with it; this is for the rest of the group.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self._gone.set()
        # Nobody is left to read their answers.
        calls.close()
        if self._stop_reason is not None:
            self._inbox.lift_bounds()

    async def _read_errors(self, guarded: GuardedProgram) -> None:
        while data := await guarded.errors.read(READ_BYTES):
            self._errors.add(data)

    async def _read_output(self, guarded: GuardedProgram, output: ProgramOutput) -> None:
        try:
            await output.read(guarded.output)
        except ProtocolBroken as fault:
            self._break(fault, output)
            await output.drop(guarded.output)
            return
        if not await self._gone_within(self._limits.linger_seconds):
            self._break(ProtocolBroken("nothing more, closed its standard output and did not end"), output)
        elif (rest := output.unfinished_line()) and self._status.is_clean and self._stop_reason is None:
            self._break(ProtocolBroken("a last line without its end", rest), output)

    def _break(self, fault: ProtocolBroken, output: ProgramOutput) -> None:
        # A run that has ended has said so itself, and what the program writes later is not wanted.
        if self._fault is None and not output.has_ended:
            self._fault = fault
            self._warn("runner.protocol_broken", reason=fault.reason)
            self._inbox.end(fault)

    def _outcome(self) -> RunnerError | None:
        if self._fault is not None:
            return self._fault
        has_ended = self._output is not None and self._output.has_ended
        if has_ended or self._stop_reason is not None or self._status.is_clean:
            return None
        said = self._errors.text()[-SHOWN_TAIL_CHARACTERS:] or "it wrote nothing to its standard error"
        return RunnerCrashed(self._status.exit or "ended with its guardian", said)

    def _cannot_start(self, number: int | None) -> InvalidRunner:
        program = self._run.program
        reason = os.strerror(number) if number is not None else "unknown reason"
        where = f"in {program.folder}" if "/" in program.command[0] else "on the worker's PATH"
        return InvalidRunner(
            self._run.runner_id, f"program {program.command[0]!r} {where} cannot be executed: {reason}"
        )

    def _warn(self, event: str, **facts: str) -> None:
        logger.warning(event, runner_id=self._run.runner_id, run_id=self._run.context.run_id, **facts)
