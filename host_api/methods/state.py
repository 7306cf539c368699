"""Host-owned state, for small JSON (PROTOCOL 9.7, HOST 10)."""

from host_api.definition import Call, host_method
from host_api.errors import too_large
from host_api.requirements import StateScopeOpen
from host_api.scopes import fence_of, fenced
from runhost.protocol import MAX_STATE_VALUE_BYTES
from runhost.protocol.host_api import (
    MAX_PAGE_ITEMS,
    Deleted,
    Done,
    StateKeys,
    StateListParams,
    StateParams,
    StateSetParams,
    StateValue,
)
from stores.jsonb import encoded_size
from stores.state import RunningState, StateOwner


@host_method("state_get", StateScopeOpen(), is_fenced=True)
async def state_get(call: Call, params: StateParams) -> StateValue:
    """Read a value; null where there is none."""
    with fenced():
        return StateValue(value=await _state(call, params.scope).get(fence_of(call.session), params.key))


@host_method("state_set", StateScopeOpen(), is_fenced=True)
async def state_set(call: Call, params: StateSetParams) -> Done:
    """Keep a value.

    Raises:
        HostCallError: `payload_too_large`: more than 256 KiB of JSON; `unauthorized`: the attempt has ended.
    """
    size = encoded_size(params.value)
    if size > MAX_STATE_VALUE_BYTES:
        raise too_large(
            f"value: {size} bytes of JSON; state holds at most {MAX_STATE_VALUE_BYTES}, storage takes more."
        )
    with fenced():
        await _state(call, params.scope).set(fence_of(call.session), params.key, params.value)
    return Done()


@host_method("state_delete", StateScopeOpen(), is_fenced=True)
async def state_delete(call: Call, params: StateParams) -> Deleted:
    """Delete a value.

    Raises:
        HostCallError: `unauthorized`: the attempt has ended.
    """
    with fenced():
        return Deleted(deleted=await _state(call, params.scope).delete(fence_of(call.session), params.key))


@host_method("state_list", StateScopeOpen(), is_fenced=True)
async def state_list(call: Call, params: StateListParams) -> StateKeys:
    """List the keys of a scope, in order, at most 100; a prefix is taken as it stands."""
    limit = min(params.limit, MAX_PAGE_ITEMS)
    with fenced():
        found = await _state(call, params.scope).list(fence_of(call.session), params.prefix or "", limit=limit + 1)
    return StateKeys(keys=found[:limit], has_more=len(found) > limit)


def _state(call: Call, scope: str) -> RunningState:
    authorization = call.session.authorization
    context = authorization.state_context
    owner = StateOwner(
        workspace_id=call.session.workspace_id,
        scope_key=context.scope_keys[scope],
        scope=scope,
        binding_identity=context.binding_identity,
        conversation_id=authorization.conversation_id,
    )
    return RunningState(call.services.pool, owner)
