"""Raises exceptions in other threads."""

import ctypes


class RunnerInterrupted(BaseException):
    """Raised by the host inside a runner that holds its thread; no `except Exception` catches it."""


def raise_in(thread_id: int, error: type[BaseException] | None) -> None:
    """Make a thread raise `error` at its next Python instruction, or withdraw what it has not raised yet.

    Code written in C goes on until it returns. The caller sees to it that the thread does not end meanwhile, since
    its id would then be free for another one.

    Args:
        thread_id: `ident` of the thread.
        error: what to raise; None withdraws.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id), None if error is None else ctypes.py_object(error)
    )
