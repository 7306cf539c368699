"""Input that a running run has claimed (PROTOCOL 9.5)."""

from host_api.definition import Call, host_method
from host_api.requirements import Available
from runhost.protocol import SteeringPullResult
from runhost.protocol.host_api import SteeringPullParams


@host_method("steering_pull", Available("steering_pull"))
async def steering_pull(call: Call, params: SteeringPullParams) -> SteeringPullResult:
    """Take claimed inputs, the oldest first."""
    # No message is claimed by a running run yet: each starts a run of its own, so nothing can be pending.
    return SteeringPullResult()
