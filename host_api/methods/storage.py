"""Bytes that a plugin keeps for itself, or for all plugins of its workspace (PROTOCOL 9.8, D-17)."""

import binascii

from host_api.definition import Call, host_method
from host_api.errors import invalid_argument, too_large
from host_api.requirements import StorageOpen
from host_api.scopes import fence_of, fenced
from runhost.protocol.host_api import (
    MAX_STORAGE_VALUE_BYTES,
    Deleted,
    Done,
    NoParams,
    StorageKeys,
    StorageParams,
    StorageSetParams,
    StorageValue,
)
from stores.plugin_storage import MAX_KEYS, WORKSPACE, PluginStorage, TooManyKeys

_PLUGIN = StorageOpen("plugin")
_WORKSPACE = StorageOpen("workspace")


@host_method("get_plugin_storage", _PLUGIN)
async def get_plugin_storage(call: Call, params: StorageParams) -> StorageValue:
    """Read a value of the plugin's own area; null where there is none."""
    return await _get(_of_plugin(call), params)


@host_method("set_plugin_storage", _PLUGIN, is_fenced=True)
async def set_plugin_storage(call: Call, params: StorageSetParams) -> Done:
    """Keep a value in the plugin's own area; see `_set` for what it refuses."""
    return await _set(_of_plugin(call), call, params)


@host_method("delete_plugin_storage", _PLUGIN, is_fenced=True)
async def delete_plugin_storage(call: Call, params: StorageParams) -> Deleted:
    """Delete a value of the plugin's own area."""
    return await _delete(_of_plugin(call), call, params)


@host_method("get_plugin_storage_keys", _PLUGIN)
async def get_plugin_storage_keys(call: Call, params: NoParams) -> StorageKeys:
    """List all keys of the plugin's own area, in order."""
    return StorageKeys(keys=await _of_plugin(call).keys())


@host_method("get_workspace_storage", _WORKSPACE)
async def get_workspace_storage(call: Call, params: StorageParams) -> StorageValue:
    """Read a value that the workspace's plugins share; null where there is none."""
    return await _get(_of_workspace(call), params)


@host_method("set_workspace_storage", _WORKSPACE, is_fenced=True)
async def set_workspace_storage(call: Call, params: StorageSetParams) -> Done:
    """Keep a value for all plugins of the workspace; see `_set` for what it refuses."""
    return await _set(_of_workspace(call), call, params)


@host_method("delete_workspace_storage", _WORKSPACE, is_fenced=True)
async def delete_workspace_storage(call: Call, params: StorageParams) -> Deleted:
    """Delete a value that the workspace's plugins share."""
    return await _delete(_of_workspace(call), call, params)


@host_method("get_workspace_storage_keys", _WORKSPACE)
async def get_workspace_storage_keys(call: Call, params: NoParams) -> StorageKeys:
    """List all keys that the workspace's plugins share, in order."""
    return StorageKeys(keys=await _of_workspace(call).keys())


def _of_plugin(call: Call) -> PluginStorage:
    return PluginStorage(call.services.pool, call.session.workspace_id, call.session.plugin_identity)


def _of_workspace(call: Call) -> PluginStorage:
    return PluginStorage(call.services.pool, call.session.workspace_id, WORKSPACE)


async def _get(area: PluginStorage, params: StorageParams) -> StorageValue:
    value = await area.get(params.key)
    return StorageValue(value_base64=None if value is None else binascii.b2a_base64(value, newline=False).decode())


async def _set(area: PluginStorage, call: Call, params: StorageSetParams) -> Done:
    """Keep a value.

    Raises:
        HostCallError: `invalid_argument`: not strict base64; `payload_too_large`: more than 10 MiB, or one key more
            than an area holds; `unauthorized`: the attempt has ended.
    """
    value = _decoded(params.value_base64)
    if len(value) > MAX_STORAGE_VALUE_BYTES:
        raise too_large(f"value_base64: {len(value)} bytes decoded; at most {MAX_STORAGE_VALUE_BYTES} are kept.")
    try:
        with fenced():
            await area.set(fence_of(call.session), params.key, value)
    except TooManyKeys:
        raise too_large(f"key: this area holds {MAX_KEYS} keys already; delete some, or keep more under one.") from None
    return Done()


async def _delete(area: PluginStorage, call: Call, params: StorageParams) -> Deleted:
    with fenced():
        return Deleted(deleted=await area.delete(fence_of(call.session), params.key))


def _decoded(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise invalid_argument("value_base64", "no valid base64; padding belongs to it, line breaks do not.") from None
