"""Facts about the host (PROTOCOL 9.9)."""

from host_api.definition import Call, host_method
from host_api.requirements import OpenRun
from runhost.protocol.host_api import HostVersion, NoParams


@host_method("get_langbot_version", OpenRun())
async def get_langbot_version(call: Call, params: NoParams) -> HostVersion:
    """Answer the version of the host."""
    return HostVersion(langbot_version=call.services.host_version)
