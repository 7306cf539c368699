"""Facts about the host."""

from host_api.methods.info import get_langbot_version
from tests.host_api.conftest import GrantedRun


async def test_host_tells_its_version(run: GrantedRun) -> None:
    assert (await run.ask(get_langbot_version)).langbot_version == "0.0.1"


async def test_next_attempt_moves_the_fence_and_takes_another_token(run: GrantedRun) -> None:
    later = await run.next_attempt()
    assert (later.attempt, later.run_id) == (run.attempt + 1, run.run_id)
    assert later.token != run.token
