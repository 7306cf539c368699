"""Names places in a runner's code, for people who have to mend it."""

import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType


def thread_position(thread_id: int, folder: Path) -> str:
    """Say where a thread is right now, as `module:line in function`.

    Args:
        thread_id: `ident` of the thread.
        folder: folder of the runner. When the innermost line is elsewhere, the line of the runner that led
            there is named too.
    """
    frame = sys._current_frames().get(thread_id)  # the documented way to look at another thread
    if frame is None:
        return "an unknown line"
    return _position(list(traceback.walk_stack(frame)), folder)


def error_position(error: BaseException, folder: Path) -> str:
    """Say where an exception was raised, in the same form; empty if it has no traceback."""
    return _position(list(traceback.walk_tb(error.__traceback__))[::-1], folder)


def _position(stack: list[tuple[FrameType, int]], folder: Path) -> str:
    """Name the first of `stack` (innermost first) and the first one inside `folder`."""
    if not stack:
        return ""
    innermost = _name(*stack[0])
    own = next((_name(*place) for place in _inside(stack, folder)), innermost)
    return innermost if own == innermost else f"{innermost}, called from {own}"


def _inside(stack: Iterable[tuple[FrameType, int]], folder: Path) -> Iterable[tuple[FrameType, int]]:
    prefix = f"{folder}/"
    return (place for place in stack if place[0].f_code.co_filename.startswith(prefix))


def _name(frame: FrameType, line: int) -> str:
    return f"{frame.f_globals.get('__name__', '?')}:{line} in {frame.f_code.co_qualname}"
