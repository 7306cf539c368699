"""Two methods that this host answers, and has nothing to say with yet."""

import pytest

from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.methods.prompt import get_prompt
from host_api.methods.steering import steering_pull
from runhost.protocol import ContextAPICapabilities, ErrorCode
from tests.host_api.conftest import GrantedRun


async def test_entry_has_no_prompt(run: GrantedRun) -> None:
    assert (await run.ask(get_prompt)).messages == []


@pytest.mark.parametrize("mode", ["all", "one", "one-at-a-time", "one_at_a_time"])
async def test_nothing_is_pending(run: GrantedRun, mode: str) -> None:
    assert (await run.ask(steering_pull, mode=mode, limit=1_000)).items == []


@pytest.mark.parametrize("method", [get_prompt, steering_pull], ids=lambda method: method.name)
async def test_method_that_is_switched_off_is_refused(run: GrantedRun, method: MethodDefinition) -> None:
    with pytest.raises(HostCallError) as refusal:
        await run.ask(method, authorization=run.narrowed(available_apis=ContextAPICapabilities()))
    assert refusal.value.code is ErrorCode.UNAUTHORIZED
