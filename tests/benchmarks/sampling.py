"""Taking samples: value and baseline in turns, so that whatever else the machine does hits both alike."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median

Sample = Callable[[], Awaitable[float]]


async def alternate(
    sample: Sample, baseline: Sample, *, seconds: float, at_least: int
) -> tuple[list[float], list[float]]:
    """Take baseline and sample in turns until ``seconds`` have passed, ``at_least`` so many times each."""
    samples: list[float] = []
    baselines: list[float] = []
    until = time.monotonic() + seconds
    while len(samples) < at_least or time.monotonic() < until:
        baselines.append(await baseline())
        samples.append(await sample())
    return samples, baselines


async def rate(one: Callable[[], Awaitable[None]], *, count: int, in_flight: int) -> float:
    """Return how many per second get done, with so many at the same time."""
    began = time.monotonic()
    await repeat(one, count=count, in_flight=in_flight)
    return count / (time.monotonic() - began)


async def repeat(one: Callable[[], Awaitable[None]], *, count: int, in_flight: int) -> None:
    """Do something ``count`` times, so many of them at the same time; the first error ends all."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await one()

    async with asyncio.TaskGroup() as workers:
        for _ in range(in_flight):
            workers.create_task(work())


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the sample that ``percent`` of them do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


__all__ = ["Sample", "alternate", "median", "percentile", "rate", "repeat"]
