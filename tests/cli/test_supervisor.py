import asyncio
from collections.abc import AsyncIterator

import pytest

from runhost.cli import supervisor as supervisor_module
from runhost.cli.supervisor import GaveUp, Supervisor
from runhost.embedded import EmbeddedError
from tests.eventually import eventually


class FakeService:
    def __init__(self, name: str, log: list[str], *, failing_starts: int = 0) -> None:
        self.name = name
        self.starts = 0
        self._log = log
        self._failing_starts = failing_starts
        self._end: asyncio.Future[int] | None = None

    async def start(self) -> None:
        self.starts += 1
        if 1 < self.starts <= 1 + self._failing_starts:
            raise EmbeddedError("not yet")
        self._end = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        assert self._end is not None
        return await asyncio.shield(self._end)

    async def stop(self) -> None:
        self._log.append(f"stop {self.name}")

    def kill(self) -> None:
        self.die(-9)

    def die(self, code: int) -> None:
        assert self._end is not None
        if not self._end.done():
            self._end.set_result(code)


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
async def supervisor(log: list[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Supervisor]:
    monkeypatch.setattr(supervisor_module, "RETRY_SECONDS", 0.0)
    supervisor = Supervisor(log.append)
    yield supervisor
    await supervisor.stop()


async def test_service_that_ends_is_started_again(supervisor: Supervisor, log: list[str]) -> None:
    service = FakeService("worker", log)
    await supervisor.start(service)

    service.die(-9)
    await eventually(lambda: service.starts == 2)
    await eventually(lambda: len(log) == 2)

    assert log == ["worker ended with code -9; starting it again", "worker is back"]


async def test_failed_restart_is_told_and_tried_again(supervisor: Supervisor, log: list[str]) -> None:
    service = FakeService("postgres", log, failing_starts=2)
    await supervisor.start(service)

    service.die(1)
    await eventually(lambda: "postgres is back" in log)

    assert log.count("not yet") == 2


async def test_sixth_end_within_a_minute_gives_up(supervisor: Supervisor, log: list[str]) -> None:
    service = FakeService("api", log)
    await supervisor.start(service)
    watching = asyncio.create_task(supervisor.watch())

    for starts in range(1, 7):
        await eventually(lambda wanted=starts: service.starts == wanted)
        service.die(1)

    with pytest.raises(GaveUp, match="api ended more than 5 times"):
        await watching


async def test_ends_far_apart_never_give_up(
    supervisor: Supervisor, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "RESTART_WINDOW_SECONDS", 0.0)
    service = FakeService("api", log)
    await supervisor.start(service)

    for starts in range(1, 10):
        await eventually(lambda wanted=starts: service.starts == wanted)
        service.die(1)

    await eventually(lambda: service.starts == 10)


async def test_stop_goes_backwards_and_restarts_nothing(supervisor: Supervisor, log: list[str]) -> None:
    services = [FakeService(name, log) for name in ("postgres", "temporal", "worker", "api")]
    for service in services:
        await supervisor.start(service)

    await supervisor.stop()
    services[0].die(0)
    await asyncio.sleep(0)

    assert log == ["stop api", "stop worker", "stop temporal", "stop postgres"]
    assert [service.starts for service in services] == [1, 1, 1, 1]


async def test_service_that_never_started_is_stopped_too(supervisor: Supervisor, log: list[str]) -> None:
    class Broken(FakeService):
        async def start(self) -> None:
            raise EmbeddedError("no")

    await supervisor.start(FakeService("postgres", log))
    with pytest.raises(EmbeddedError):
        await supervisor.start(Broken("temporal", log))

    await supervisor.stop()

    assert log == ["stop temporal", "stop postgres"]
