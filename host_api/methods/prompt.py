"""The prompt of the entry (PROTOCOL 9.4)."""

from host_api.definition import Call, host_method
from host_api.requirements import Available
from runhost.protocol.host_api import NoParams, Prompt


@host_method("get_prompt", Available("prompt_get"))
async def get_prompt(call: Call, params: NoParams) -> Prompt:
    """Answer an empty list: no entry of this host has a prompt, so the runner falls back to its own."""
    return Prompt()
