"""The names of the skills that a conversation has activated, under a key of the host in its state (HOST 10)."""

from typing import Final

import asyncpg

from stores.fence import OPEN_ATTEMPT, Fence, stale
from stores.jsonb import dumps
from stores.state import StateOwner

STATE_KEY: Final = "host.activated_skills"

# Something else under the key is the runner's doing, and is replaced.
_APPEND = f"""
WITH {OPEN_ATTEMPT}
INSERT INTO runner_state (scope_key, state_key, workspace_id, scope, runner_id, binding_identity, conversation_id,
    value, run_id)
SELECT $3, $4, workspace_id, $5, runner_id, $6, $7, $8::jsonb, run_id FROM fence
ON CONFLICT (scope_key, state_key) DO UPDATE
SET value = CASE
        WHEN jsonb_typeof(runner_state.value) IS DISTINCT FROM 'array' THEN excluded.value
        WHEN runner_state.value @> excluded.value THEN runner_state.value
        ELSE runner_state.value || excluded.value
    END,
    run_id = excluded.run_id, sequence = NULL, updated_at = now()
RETURNING true
"""  # noqa: S608 - constants only


class ActivatedSkills:
    """The names of one conversation, each once, in the order of their first activation."""

    def __init__(self, pool: asyncpg.Pool, owner: StateOwner) -> None:
        self._pool = pool
        self._owner = owner

    async def add(self, fence: Fence, skill_name: str) -> None:
        """Note that a skill was activated; again changes nothing.

        Raises:
            StaleAttempt: The fence has passed; nothing is written.
        """
        owner = self._owner
        written = await self._pool.fetchval(
            _APPEND,
            fence.run_id,
            fence.attempt,
            owner.scope_key,
            STATE_KEY,
            owner.scope,
            owner.binding_identity,
            owner.conversation_id,
            dumps([skill_name]),
        )
        if written is None:
            raise stale()
