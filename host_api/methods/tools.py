"""Tools: of servers, and the host's own one for skills (PROTOCOL 9.2, HOST 6)."""

from typing import Final

from host_api.authorization import ACTIVATE
from host_api.definition import Call, host_method
from host_api.errors import invalid_argument, not_found, unauthorized
from host_api.provided import provided
from host_api.requirements import Granted
from host_api.scopes import fence_of, fenced
from providers.tools import ToolServerAddress
from runhost.protocol import JsonObject, JsonValue
from runhost.protocol.host_api import CallToolParams, ToolDetail, ToolParams, ToolResult
from stores.activated_skills import ActivatedSkills
from stores.skills import SkillStore
from stores.state import StateOwner
from stores.tool_servers import ToolRow, ToolServerStore

RUN_ID_KEY: Final = "runhost/run_id"
"""Key in the `_meta` of a tool call that tells a server for which run it works."""

_SCOPE: Final = "conversation"
_SKILL_NAME: Final = "skill_name"


@host_method("get_tool_detail", Granted("tool", "tool_name", frozenset({"detail"})))
async def get_tool_detail(call: Call, params: ToolParams) -> ToolDetail:
    """Describe a tool."""
    if _is_of_skills(call, params.tool_name):
        return _activate_detail(call)
    tool = await _tool(call, params.tool_name)
    return ToolDetail(
        tool_name=tool.tool_name,
        human_desc=tool.human_desc,
        description=tool.description,
        parameters=tool.parameters,
    )


@host_method("call_tool", Granted("tool", "tool_name", frozenset({"call"})))
async def call_tool(call: Call, params: CallToolParams) -> ToolResult:
    """Call a tool once."""
    if _is_of_skills(call, params.tool_name):
        return await _activate(call, params.parameters)
    tool = await _tool(call, params.tool_name)
    address = await _address(call, tool.server_id)
    with provided():
        return await call.services.tools.call(
            address, tool.remote_name, params.parameters, {RUN_ID_KEY: str(call.session.run_id)}
        )


def _is_of_skills(call: Call, tool_name: str) -> bool:
    """Tell the host's own tool from one of a server that has its name."""
    return tool_name == ACTIVATE and any(
        tool.tool_name == ACTIVATE and tool.tool_type == "skill" for tool in call.session.authorization.resources.tools
    )


def _activate_detail(call: Call) -> ToolDetail:
    names: list[JsonValue] = [skill.skill_name for skill in call.session.authorization.resources.skills]
    name: JsonObject = {"type": "string", "description": "Name of the skill.", "enum": names}
    return ToolDetail(
        tool_name=ACTIVATE,
        human_desc="Activate a skill",
        description="Return the instructions of a skill.",
        parameters={
            "type": "object",
            "properties": {_SKILL_NAME: name},
            "required": [_SKILL_NAME],
            "additionalProperties": False,
        },
    )


async def _activate(call: Call, parameters: JsonObject) -> ToolResult:
    """Answer the instructions of a granted skill, and remember that the conversation has it.

    Raises:
        HostCallError: `unauthorized`: it is not granted or does not exist; `invalid_argument`: it has no name.
    """
    name = parameters.get(_SKILL_NAME)
    if not isinstance(name, str) or len(parameters) != 1:
        raise invalid_argument(f"parameters.{_SKILL_NAME}", "must be the name of a skill, and the only parameter")
    session = call.session
    if not session.authorization.operations("skill", name):
        raise unauthorized(
            f"parameters.{_SKILL_NAME}: this run may not activate {name[:255]!r}; ctx.resources lists what it may."
        )
    async with call.services.engine.connect() as connection:
        skill = await SkillStore(connection, session.workspace_id).get(name)
    context = session.authorization.state_context
    if _SCOPE in context.scope_keys:
        owner = StateOwner(
            workspace_id=session.workspace_id,
            scope_key=context.scope_keys[_SCOPE],
            scope=_SCOPE,
            binding_identity=context.binding_identity,
            conversation_id=session.authorization.conversation_id,
        )
        with fenced():
            await ActivatedSkills(call.services.pool, owner).add(fence_of(session), name)
    return ToolResult(result={_SKILL_NAME: name, "instructions": skill.instructions})


async def _tool(call: Call, tool_name: str) -> ToolRow:
    """Return a granted tool.

    Raises:
        ToolNotFound: It is no longer in the workspace.
        HostCallError: `not_found`: its server was disabled.
    """
    async with call.services.engine.connect() as connection:
        tool = await ToolServerStore(connection, call.session.workspace_id).get_tool(tool_name)
    if not tool.enabled:
        raise not_found(f"The server of tool {tool_name!r} is disabled.")
    return tool


async def _address(call: Call, server_id: str) -> ToolServerAddress:
    async with call.services.engine.connect() as connection:
        server = await ToolServerStore(connection, call.session.workspace_id).get(server_id)
    return ToolServerAddress(
        server_id=server.server_id,
        transport=server.transport,
        command=tuple(server.command),
        env=server.env,
        url=server.url,
        headers=server.headers,
        workspace_id=call.session.workspace_id,
    )
