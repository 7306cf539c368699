"""Becomes another program that ends when its parent ends.

Run as a script, by path, with ``python -I -S``; standard library only, so that it costs milliseconds::

    launcher.py PARENT_PID DEATH_SIGNAL USER PROGRAM [ARGUMENT ...]

``USER`` is the account to run as, or ``-`` for the caller's own. A program of its own rather than a
``preexec_fn``, which is not safe in a process with threads. Outside Linux nothing watches the parent.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def _drop_privileges(user: str) -> None:
    import pwd

    account = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    os.environ["HOME"] = "/"


def _die_with(parent: int, death_signal: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    if os.getppid() != parent:
        # It ended before the kernel was told to watch it.
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """Replace this process by the program."""
    parent, death_signal, user, *command = arguments
    if user != "-":
        _drop_privileges(user)
    if sys.platform == "linux":
        # After the change of user, which makes the kernel forget the signal.
        _die_with(int(parent), int(death_signal))
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
