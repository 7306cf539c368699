"""What the kernel knows of a process (Linux)."""

import asyncio
import os
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


async def cpu_percent(pid: int, seconds: float) -> float:
    """Watch a process for some seconds; return its share of one core, user and system time."""
    before, began = _cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    return 100 * (_cpu_seconds(pid) - before) / (time.monotonic() - began)


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # The fields utime and stime, 14 and 15 of the whole line.
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
