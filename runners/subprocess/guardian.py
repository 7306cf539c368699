"""Starts a program and ends it, with every process that it started; a program of its own between worker and runner.

Run as a script, by path, with ``python -I -S``; standard library only, so that it costs milliseconds::

    guardian.py LIFELINE STATUS PROGRAM [ARGUMENT ...]

``LIFELINE`` and ``STATUS`` are inherited descriptors of pipes. Standard input, output and error, environment and
working directory are those of the program.

On Linux the guardian is the *subreaper* of its descendants: whoever loses its parent becomes a child of the
guardian, whatever process group, session or environment it gave itself. So "no child left" means that nothing
is left, without trusting what a process says about itself. The program alone is also told by the kernel to die with
the guardian.

The lifeline carries orders: ``T`` sends SIGTERM to the program's process group, ``K`` ends everything. When the
worker closes it, by its end or by ``kill -9``, everything is ended too. The same happens when the program ends.

The status is lines: ``started PID``, or ``refused ERRNO`` when the program cannot be executed; ``exited CODE`` or
``signalled NUMBER`` for the program; ``left PID ...`` for processes that do not die, half a second after they were
killed. The guardian ends when nothing is left.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STUBBORN_SECONDS = 0.5
LOOK_SECONDS = 0.01


def main(arguments: list[str]) -> None:
    """Guard one program."""
    lifeline, status, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    os.set_inheritable(lifeline, False)
    os.set_inheritable(status, False)
    # Whoever ends the worker's whole service in order signals us too; the worker then tells what to do.
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    if sys.platform == "linux":
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    program = start(command, status)
    if program is None:
        return
    say(status, f"started {program}")
    # The program alone holds its pipes, so that they end with it.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    watch(program, lifeline, wake, status)
    end_all(program, status)


def start(command: list[str], status: int) -> int | None:
    """Start the program in a session of its own; return its process id, None if it cannot be executed."""
    check, checked = os.pipe()
    guardian = os.getpid()
    program = os.fork()
    if program == 0:
        try:
            become(command, guardian)
        except OSError as error:
            os.write(checked, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(checked)
    # Both ends close when another program takes the place of this one, so the end of the pipe means that it has.
    refusal = os.read(check, 16).decode()
    os.close(check)
    if not refusal:
        return program
    os.waitpid(program, 0)
    say(status, f"refused {refusal}")
    return None


def become(command: list[str], guardian: int) -> None:
    """Become the program; in the child."""
    os.setsid()
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            # It ended before the kernel was told to watch it.
            os._exit(127)
    for used in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(used, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606


def watch(program: int, lifeline: int, wake: int, status: int) -> None:
    """Wait until the program has ended or everything has to end; pass on what the worker orders."""
    while True:
        ready, _, _ = select.select([lifeline, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            if reap(program, status):
                return
        if lifeline in ready:
            orders = os.read(lifeline, 64)
            if not orders or b"K" in orders:
                return
            signal_group(program, signal.SIGTERM)


def reap(program: int, status: int) -> bool:
    """Collect who has ended; return whether the program is among them, or nobody is left at all."""
    is_over = False
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return is_over
        if pid == program:
            code = os.waitstatus_to_exitcode(how)
            say(status, f"exited {code}" if code >= 0 else f"signalled {-code}")
            is_over = True


def end_all(program: int, status: int) -> None:
    """Kill until nobody is left: new processes may be born while we look."""
    began, is_reported = time.monotonic(), False
    while True:
        if sys.platform != "linux":
            signal_group(program, signal.SIGKILL)
        left = descendants()
        for pid in left:
            send(pid, signal.SIGKILL)
        reap(program, status)
        if not has_children():
            return
        if not is_reported and time.monotonic() - began > STUBBORN_SECONDS:
            is_reported = True
            say(status, " ".join(["left", *map(str, left)]))
        time.sleep(LOOK_SECONDS)


def has_children() -> bool:
    """Tell whether somebody is left, alive or waiting to be collected."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants() -> list[int]:
    """Find everyone below this process (Linux; elsewhere nobody, and the process group has to do)."""
    children: dict[int, list[int]] = {}
    # pathlib takes longer to import than all of this.
    for name in os.listdir("/proc") if sys.platform == "linux" else ():  # noqa: PTH208
        if name.isdigit():
            parent = parent_of(name)
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def parent_of(pid: str) -> int:
    """Read the parent of a process; 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            # The name in brackets may hold anything, brackets too.
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def signal_group(program: int, number: int) -> None:
    """Signal the program's process group, as far as there is one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(program, number)


def send(pid: int, number: int) -> None:
    """Signal one process, if it is still there and ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def say(status: int, line: str) -> None:
    """Tell the worker, if it is still there."""
    with contextlib.suppress(BrokenPipeError):
        os.write(status, f"{line}\n".encode())


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    main(sys.argv[1:])
