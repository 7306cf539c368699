"""Agents: what to run, under which policies."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.models import AgentRead
from api.paging import Page, PageQuery, Pager
from api.problems import invalid
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import AgentConfig, Identifier, InvalidRunnerId, RunnerId, UnknownFields
from stores.agents import AgentStore, AgentVersion

router = APIRouter(prefix="/v1/agents", route_class=AuthenticatedRoute, tags=["agents"])

AgentRequest = Annotated[AgentConfig, UnknownFields("forbid")]


@router.put("/{agent_id:id}", operation_id="putAgent", response_model=AgentRead, responses=problems(body=True))
async def put_agent(agent_id: Identifier, body: AgentRequest, caller: AgentWriter, host: Host) -> JsonResponse:
    """Create an agent, or make this its next version. Runs keep the version they started with."""
    if body.agent_id not in {None, agent_id}:
        raise invalid("agent_id", f"must be left out, or be that of the path, {agent_id!r}", body.agent_id, status=422)
    try:
        RunnerId.parse(body.runner_id)
    except InvalidRunnerId as error:
        raise invalid("runner_id", str(error), body.runner_id, status=422) from None
    config = body.model_copy(update={"agent_id": agent_id})
    async with host.engine.begin() as connection:
        agent = await AgentStore(connection, caller.workspace_id).put(agent_id, config)
    return JsonResponse(_read(agent))


@router.get("", operation_id="listAgents", response_model=Page[AgentRead], responses=problems(400))
async def list_agents(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the agents, in order of their ids."""
    pager = Pager(host.cursors, query.list_name("agents", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await AgentStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_read, position_of=lambda agent: agent.agent_id))


@router.get("/{agent_id:id}", operation_id="getAgent", response_model=AgentRead, responses=problems(404))
async def get_agent(agent_id: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read the current version of an agent."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await AgentStore(connection, caller.workspace_id).get(agent_id)))


def _read(agent: AgentVersion) -> Document:
    return {
        "agent_id": agent.agent_id,
        "version": agent.version,
        "config": agent.config.model_dump(mode="json"),
        "created_at": agent.created_at,
    }
