"""Skills of a workspace."""

import hashlib

import pytest

from stores.errors import SkillNotFound
from stores.skills import SkillStore
from tests.fixtures.host import WORKSPACE, Host
from tests.stores.grants import run_with, taken_from

TEXT = "Look \0 twice. 二度見る。 \ud800"


async def test_g_7_skill_is_read_as_it_was_put_with_its_digest(host: Host) -> None:
    async with host.engine.begin() as connection:
        skills = SkillStore(connection, WORKSPACE)
        made = await skills.put({"skill_name": "look", "display_name": "Look", "instructions": TEXT})
        assert made == await skills.get("look")
        assert (made.instructions, made.display_name, made.description) == (TEXT, "Look", None)
        assert made.sha256 == hashlib.sha256(TEXT.encode("utf-8", "surrogatepass")).hexdigest()
        changed = await skills.put({"skill_name": "look", "instructions": "other"})
    assert changed.sha256 != made.sha256


async def test_skills_of_workspaces_are_apart_and_in_order(host: Host) -> None:
    async with host.engine.begin() as connection:
        skills = SkillStore(connection, WORKSPACE)
        for name in ("b", "a"):
            await skills.put({"skill_name": name, "instructions": "x"})
        assert [skill.skill_name for skill in await skills.list(limit=5)] == ["a", "b"]
        assert await SkillStore(connection, "other").list(limit=5) == []
        for absent in (skills.get("c"), skills.delete("c"), SkillStore(connection, "other").get("a")):
            with pytest.raises(SkillNotFound):
                await absent


async def test_d_15_deleted_skill_is_taken_back_from_open_runs(host: Host) -> None:
    run_id = await run_with(host, skills=[{"skill_name": "look"}])
    async with host.engine.begin() as connection:
        skills = SkillStore(connection, WORKSPACE)
        await skills.put({"skill_name": "look", "instructions": TEXT})
        await skills.delete("look")
    assert await taken_from(host, run_id) == [("skill", "look")]
