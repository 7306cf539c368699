import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from runhost.embedded import ChildProcess, DataDirectory, DataDirectoryInUse, EmbeddedError, StartFailed
from runhost.embedded import process as process_module
from tests.eventually import eventually
from tests.processes import is_alive

SLEEP = "import time; time.sleep(60)"
IGNORE_TERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {SLEEP}"
# A child that leaves a process of its own behind, which inherits what the child was given to hold.
FORK = f"import os, sys; child = os.fork(); print(child or '', flush=True); {SLEEP}"

Start = Callable[[str], Awaitable[ChildProcess]]


@pytest.fixture
async def start(data_directory: DataDirectory) -> AsyncIterator[Start]:
    children: list[ChildProcess] = []

    async def start_child(script: str) -> ChildProcess:
        child = ChildProcess("child", data_directory, stop_steps=((signal.SIGTERM, 0.2),))
        children.append(child)
        await child.start([sys.executable, "-c", script])
        return child

    yield start_child
    for child in children:
        await child.stop()


async def test_stop_kills_a_child_that_ignores_it(start: Start) -> None:
    child = await start(IGNORE_TERM)
    await eventually(lambda: "deaf" in child.log_tail())
    pid = child.pid

    await child.stop()

    assert pid is not None
    assert not is_alive(pid)
    assert child.pid is None


async def test_stop_kills_what_the_child_left_behind(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "KILL_GRACE_SECONDS", 0.2)
    child = await start(FORK)
    grandchild = int(await eventually(lambda: child.log_tail().strip()))

    await child.stop()

    assert not is_alive(grandchild)


async def test_start_waits_for_remains_and_then_kills_them(
    start: Start, data_directory: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "LEFTOVER_GRACE_SECONDS", 0.1)
    first = await start(SLEEP)
    remains = first.pid
    second = ChildProcess("child", data_directory)

    await second.start([sys.executable, "-c", SLEEP])

    assert remains is not None
    assert not is_alive(remains)
    await second.stop()


async def test_child_dies_with_its_killed_owner(data_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from runhost.embedded import ChildProcess, DataDirectory\n"
        "async def main():\n"
        f"    with DataDirectory(Path({str(data_path)!r})) as directory:\n"
        "        child = ChildProcess('child', directory)\n"
        f"        await child.start([sys.executable, '-c', {SLEEP!r}])\n"
        "        print(child.pid, flush=True)\n"
        "        await child.wait()\n"
        "asyncio.run(main())\n"
    )
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout is not None
    pid = int(await owner.stdout.readline())

    owner.kill()
    await owner.wait()

    await eventually(lambda: not is_alive(pid))


async def test_starting_twice_is_refused(start: Start) -> None:
    child = await start(SLEEP)

    with pytest.raises(EmbeddedError, match=f"already running as process {child.pid}"):
        await child.start([sys.executable, "-c", SLEEP])


async def test_failure_shows_what_this_start_wrote(start: Start, data_path: Path) -> None:
    (data_path / "logs" / "child.log").write_text("old news\n")
    child = await start("import sys; sys.exit('bad luck')")
    await child.wait()

    error = child.failed("it ended")

    assert isinstance(error, StartFailed)
    assert "bad luck" in str(error)
    assert "old news" not in str(error)


async def test_large_log_is_put_aside(start: Start, data_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "LOG_ROTATE_BYTES", 10)
    (data_path / "logs" / "child.log").write_text("more than ten bytes\n")

    await start(SLEEP)

    assert (data_path / "logs" / "child.log.1").read_text() == "more than ten bytes\n"


def test_second_owner_is_refused_and_told_who(data_directory: DataDirectory) -> None:
    with pytest.raises(DataDirectoryInUse, match=f"in use by process {os.getpid()}"):
        DataDirectory(data_directory.path).acquire()


def test_folder_that_cannot_be_made_is_told(data_path: Path) -> None:
    (data_path / "file").write_text("")

    with pytest.raises(EmbeddedError, match="cannot hold data: Not a directory"):
        DataDirectory(data_path / "file" / "data").acquire()


def test_directory_can_be_owned_again_after_release(data_path: Path) -> None:
    with DataDirectory(data_path):
        pass

    with DataDirectory(data_path) as directory:
        assert directory.is_owned


async def test_directory_of_a_killed_owner_is_free(data_path: Path, start_owner) -> None:
    owner, _ = await start_owner("temporal")
    with pytest.raises(DataDirectoryInUse, match=f"in use by process {owner.pid}"):
        DataDirectory(data_path).acquire()

    owner.kill()
    await owner.wait()

    with DataDirectory(data_path) as directory:
        assert directory.is_owned
