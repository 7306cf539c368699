"""What a run may reach, asked through the client of the real API."""

import uuid
from contextlib import aclosing

from runhost.client import RunhostClient, RunRequest
from runhost.protocol import AgentConfig
from tests.client.stub import FAST
from tests.fixtures.host import SCRIPTED
from tests.fixtures.live_host import LiveHost


async def test_running_run_loses_everything_and_its_reader_sees_it(live_host: LiveHost) -> None:
    agent_id = uuid.uuid4().hex
    async with RunhostClient(live_host.url, live_host.key, retry=FAST) as client:
        config = AgentConfig(runner_id=SCRIPTED, runner_config={"script": [{"delta": "a"}, {"silence": True}]})
        await client.put_agent(agent_id, config)
        run = await client.create_run(RunRequest(agent_id=agent_id))
        async with aclosing(client.follow_run(run.run_id)) as events:
            while (await anext(events)).type != "message.delta":
                pass
            before = await client.get_authorization(run.run_id)
            after = await client.revoke_grant(run.run_id, "run", reason="enough")
            row = await anext(events)
        await client.cancel_run(run.run_id)
    assert (row.type, row.data) == ("host.grant_revoked", {"kind": "run", "id": None, "reason": "enough"})
    assert before.snapshot == before.effective == after.snapshot
    assert before.snapshot is not None
    assert before.snapshot.available_apis.state
    assert after.effective is not None
    assert not after.effective.available_apis.state
    assert [(entry.kind, entry.reason) for entry in after.revocations] == [("run", "enough")]
