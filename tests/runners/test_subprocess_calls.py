"""Host calls of programs: answers, streams, refusals, turns, and who gives up what."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runhost.protocol.host_api import HOST_METHODS
from runners.subprocess.calls import MAX_RUNNING, MAX_WAITING, NOT_THE_PROGRAMS
from runners.transport import StopReason
from tests.eventually import eventually
from tests.runners.programs import FakeHost, play, program_of, read_all, start_program

PASS_ON = """
for line in sys.stdin:
    result("heard", **json.loads(line))
"""


async def test_answer_comes_with_the_id_of_the_call(tmp_path: Path) -> None:
    host = FakeHost()
    code = 'call(7, "state_get", scope="actor", key="k")\nresult("heard", **read())'
    assert await play(tmp_path, code, host) == [
        {"type": "answer", "id": 7, "result": {"method": "state_get", "scope": "actor", "key": "k"}}
    ]
    assert host.calls == [("state_get", {"scope": "actor", "key": "k"})]


async def test_parameters_may_be_left_out(tmp_path: Path) -> None:
    code = 'write(type="call", id=0, method="get_prompt")\nresult("heard", **read())'
    assert await play(tmp_path, code) == [{"type": "answer", "id": 0, "result": {"method": "get_prompt"}}]


async def test_refusal_is_an_answer_with_an_error(tmp_path: Path) -> None:
    """PROTOCOL 10: code, message, whether to try again, and details."""
    (heard,) = await play(tmp_path, 'call(1, "refuse")\nresult("heard", **read())')
    assert heard["error"] == {
        "code": "unauthorized",
        "message": "not granted",
        "retryable": False,
        "details": {"resource": "m1"},
    }
    assert "result" not in heard


async def test_call_that_breaks_the_host_is_answered_too(tmp_path: Path) -> None:
    (heard,) = await play(tmp_path, 'call(1, "break")\nresult("heard", **read())')
    assert heard["error"]["code"] == "runtime_error"


async def test_stream_is_items_and_an_end(tmp_path: Path) -> None:
    code = 'call(1, "invoke_llm_stream")\nfor _ in range(4):\n    result("heard", **read())'
    assert await play(tmp_path, code) == [
        *({"type": "item", "id": 1, "result": {"number": number}} for number in range(3)),
        {"type": "end", "id": 1},
    ]


async def test_stream_that_breaks_off_ends_with_an_error(tmp_path: Path) -> None:
    code = 'call(1, "invoke_llm_stream", refuse=True)\nfor _ in range(4):\n    result("heard", **read())'
    *items, last = await play(tmp_path, code)
    assert [item["type"] for item in items] == ["item"] * 3
    assert (last["type"], last["error"]["code"], last["error"]["retryable"]) == ("answer", "runtime_error", True)


@pytest.mark.parametrize("where", ["beside the params", "among the params"])
async def test_identity_in_a_call_is_ignored(tmp_path: Path, where: str) -> None:
    """H-A3, PM-7: who calls is known by the connection; what a program says of it reaches nobody."""
    host = FakeHost()
    forged = dict.fromkeys(NOT_THE_PROGRAMS, "evil/other")
    message: dict[str, Any] = {"type": "call", "id": 1, "method": "state_get", "params": {"key": "k"}}
    if where == "among the params":
        message["params"] |= forged
    else:
        message |= forged
    await play(tmp_path, f"write(**{message!r})\nread()", host)
    assert host.calls == [("state_get", {"key": "k"})]


def test_no_method_takes_what_is_left_out_of_calls() -> None:
    """Otherwise leaving it out would take something from a method."""
    taken = {name for method in HOST_METHODS.values() for name in method.params.model_fields}
    assert not taken & NOT_THE_PROGRAMS


async def test_calls_run_at_the_same_time_up_to_a_limit(tmp_path: Path) -> None:
    host = FakeHost()
    code = 'for id_ in range(100):\n    call(id_, "wait")\nfor _ in range(100):\n    result("heard", id=read()["id"])'
    session = start_program(program_of(tmp_path, code), host)
    await eventually(lambda: host.running == MAX_RUNNING)
    host.release.set()
    heard = [result["data"]["id"] for result in await read_all(session)]
    assert sorted(heard) == list(range(100))
    assert host.most_running == MAX_RUNNING
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_flood_of_calls_is_read_no_faster_than_it_is_answered(tmp_path: Path) -> None:
    host = FakeHost()
    count = MAX_WAITING + 500
    code = f"""
import threading
def hear():
    for _ in range({count}):
        read()
    result("heard")
threading.Thread(target=hear).start()
for id_ in range({count}):
    call(id_, "wait")
"""
    session = start_program(program_of(tmp_path, code), host)
    await eventually(lambda: host.running == MAX_RUNNING)
    host.release.set()
    assert len(await read_all(session)) == 1
    assert len(host.calls) == count
    assert await session.stop(StopReason.ENDED, 5) is None


async def test_id_may_be_used_again_after_its_answer(tmp_path: Path) -> None:
    code = 'for n in range(50):\n    call(1, "state_get", n=n)\n    assert read()["result"]["n"] == n\nresult("done")'
    assert await play(tmp_path, code) == [{}]


async def test_aborted_call_is_cancelled_and_not_answered(tmp_path: Path) -> None:
    host = FakeHost()
    code = """
call(1, "wait")
write(type="abort", id=1)
call(2, "invoke_llm_stream", wait=True)
for _ in range(3):
    read()
write(type="abort", id=2)
write(type="abort", id=99)
call(1, "state_get")
result("heard", **read())
"""
    (heard,) = await play(tmp_path, code, host)
    assert (heard["type"], heard["id"]) == ("answer", 1)
    assert "result" in heard
    # The first one may have been given up before it was made.
    assert host.cancelled in (["invoke_llm_stream"], ["wait", "invoke_llm_stream"])


async def test_cancel_of_the_run_cancels_its_calls(tmp_path: Path) -> None:
    host = FakeHost()
    session = start_program(program_of(tmp_path, 'call(1, "wait")\nresult("waits")' + PASS_ON), host)
    await eventually(lambda: host.running == 1)
    await session.next_batch()
    stop = asyncio.create_task(session.stop(StopReason.CANCELLED, 5))
    cancel, answer = await _two(session)
    assert cancel == {"type": "cancel", "reason": "cancelled", "grace_seconds": 5}
    assert (answer["id"], answer["error"]["code"]) == (1, "cancelled")
    assert host.cancelled == ["wait"]
    stop.cancel()
    await asyncio.wait([stop])
    await eventually(lambda: session.gone)


async def test_cancelled_run_may_still_call_to_tidy_up(tmp_path: Path) -> None:
    code = """
result("waits")
assert read()["type"] == "cancel"
call(1, "state_set", key="k", value=1)
result("heard", **read())
"""
    host = FakeHost()
    session = start_program(program_of(tmp_path, code), host)
    await session.next_batch()
    assert await session.stop(StopReason.DEADLINE, 10) is None
    (last,) = await read_all(session)
    assert last["data"]["result"]["value"] == 1


async def test_calls_of_a_program_that_has_ended_are_cancelled(tmp_path: Path) -> None:
    host = FakeHost()
    session = start_program(program_of(tmp_path, 'call(1, "wait")\nresult("asked")\ntime.sleep(0.2)'), host)
    await read_all(session)
    await session.stop(StopReason.ENDED, 5)
    await eventually(lambda: host.cancelled == ["wait"])


async def test_program_that_reads_nothing_holds_up_nobody(tmp_path: Path) -> None:
    host = FakeHost()
    code = 'for id_ in range(20):\n    call(id_, "state_get", value="x" * 100_000)\nresult("run.completed")'
    assert await play(tmp_path, code, host) == [{}]


async def test_standard_input_that_is_closed_early_hurts_nobody(tmp_path: Path) -> None:
    code = 'os.close(0)\ncall(1, "state_get")\ncall(2, "state_get")\nresult("run.completed")'
    assert await play(tmp_path, code) == [{}]


async def _two(session: Any) -> list[Any]:
    heard: list[Any] = []
    while len(heard) < 2:
        heard += [result["data"] for result in await session.next_batch()]
    return heard
