"""Skills: instructions that agents can be granted to activate."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.auth import AgentWriter, AuthenticatedRoute, RunReader
from api.encoding import Document, JsonResponse
from api.paging import Page, PageQuery, Pager
from api.resource_models import SkillRead, SkillRequest, SkillSummary
from api.routes.responses import problems
from api.services import Host
from runhost.protocol import Identifier
from stores.skills import SkillRow, SkillStore

router = APIRouter(prefix="/v1/skills", route_class=AuthenticatedRoute, tags=["resources"])


@router.put("/{skill_name:id}", operation_id="putSkill", response_model=SkillRead, responses=problems(body=True))
async def put_skill(skill_name: Identifier, body: SkillRequest, caller: AgentWriter, host: Host) -> JsonResponse:
    """Create or replace a skill."""
    async with host.engine.begin() as connection:
        skill = await SkillStore(connection, caller.workspace_id).put(body.model_dump() | {"skill_name": skill_name})
    return JsonResponse(_read(skill))


@router.get("", operation_id="listSkills", response_model=Page[SkillSummary], responses=problems(400))
async def list_skills(query: Annotated[PageQuery, Query()], caller: RunReader, host: Host) -> JsonResponse:
    """Page the skills without their instructions, in order of their names."""
    pager = Pager(host.cursors, query.list_name("skills", caller.workspace_id), str)
    async with host.reads.connect() as connection:
        found = await SkillStore(connection, caller.workspace_id).list(
            after=pager.position(query) or "", limit=query.size + 1
        )
    return JsonResponse(pager.page(found, query.size, read=_summary, position_of=lambda skill: skill.skill_name))


@router.get("/{skill_name:id}", operation_id="getSkill", response_model=SkillRead, responses=problems(404))
async def get_skill(skill_name: Identifier, caller: RunReader, host: Host) -> JsonResponse:
    """Read a skill with its instructions."""
    async with host.reads.connect() as connection:
        return JsonResponse(_read(await SkillStore(connection, caller.workspace_id).get(skill_name)))


@router.delete("/{skill_name:id}", operation_id="deleteSkill", status_code=204, responses=problems(404))
async def delete_skill(skill_name: Identifier, caller: AgentWriter, host: Host) -> Response:
    """Delete a skill and take it back from open runs."""
    async with host.engine.begin() as connection:
        await SkillStore(connection, caller.workspace_id).delete(skill_name)
    return Response(status_code=204)


def _summary(skill: SkillRow) -> Document:
    return {
        "skill_name": skill.skill_name,
        "display_name": skill.display_name,
        "description": skill.description,
        "sha256": skill.sha256,
        "created_at": skill.created_at,
        "updated_at": skill.updated_at,
    }


def _read(skill: SkillRow) -> Document:
    return _summary(skill) | {"instructions": skill.instructions}
