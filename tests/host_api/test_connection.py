"""The connection that the host gives to a runner which it executes itself."""

from typing import Any

import pytest

from host_api.connection import AttemptConnection
from runhost.protocol import AgentAPIException
from runhost.protocol.host_api import HOST_METHODS
from tests.host_api.conftest import GrantedRun
from tests.host_api.gates import open_gate

FORGED: dict[str, Any] = {
    "run_id": "00000000-0000-7000-8000-000000000000",
    "token": "x",
    "plugin_identity": "evil/other",
    "caller_plugin_identity": "evil/other",
}


@pytest.mark.parametrize("name", FORGED)
async def test_identity_that_a_runner_writes_into_a_call_changes_nothing(run: GrantedRun, name: str) -> None:
    """PM-7, H-A3: the call is noted as that of the runner whose connection it is."""
    async with open_gate(run.services) as gate:
        connection = AttemptConnection(gate.api, run.credentials)
        with pytest.raises(AgentAPIException) as refusal:
            await connection.call("state_get", {"scope": "actor", "key": "k", name: FORGED[name]})
        (access,) = await gate.accesses()
    assert (refusal.value.error.code, access["result"]) == ("invalid_argument", "invalid_argument")
    assert name in refusal.value.error.message
    assert (access["run_id"], access["runner_id"]) == (run.run_id, run.row.runner_id)


def test_no_method_takes_an_identity() -> None:
    """PM-7."""
    taken = {name for method in HOST_METHODS.values() for name in method.params.model_fields}
    assert not taken & FORGED.keys()
