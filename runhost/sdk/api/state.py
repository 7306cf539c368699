"""Host-owned state and storage: small JSON by scope, and bytes by area (PROTOCOL 9.7, 9.8)."""

import base64
from typing import Literal

from runhost.protocol import MAX_STATE_VALUE_BYTES, JsonValue, StateScope
from runhost.protocol.host_api import (
    MAX_PAGE_ITEMS,
    MAX_STORAGE_VALUE_BYTES,
    Deleted,
    Done,
    StateKeys,
    StateValue,
    StorageKeys,
    StorageValue,
)
from runhost.sdk.api.calls import ProxyPart
from runhost.sdk.api.encoding import decode_base64, encode
from runhost.sdk.api.errors import invalid_argument, too_large

_Area = Literal["plugin", "workspace"]


class StateCalls(ProxyPart):
    """Calls for state and storage; see `AgentRunAPIProxy`."""

    async def state_get(self, scope: StateScope, key: str) -> JsonValue:
        """Read a value as it is now, None where there is none. Needs the flag `state` and an open scope.

        `ctx.state` has the values of the run's start without a call.
        """
        self._grants.check_api("state")
        return (await self._calls.call("state_get", StateValue, scope=scope, key=key)).value

    async def state_set(self, scope: StateScope, key: str, value: JsonValue) -> None:
        """Keep a value, at most 256 KiB as JSON. Needs the flag `state` and an open scope.

        Unlike `results.state`, it is stored at once and is no row of the ledger.
        """
        self._grants.check_api("state")
        # The whole call may be larger than the value, so its own limit would be met too late.
        if _json_size(value) > MAX_STATE_VALUE_BYTES:
            raise too_large(
                f"value: a state value may have {MAX_STATE_VALUE_BYTES} bytes of JSON; keep larger ones in storage."
            )
        await self._calls.call("state_set", Done, scope=scope, key=key, value=value)

    async def state_delete(self, scope: StateScope, key: str) -> bool:
        """Delete a value; tells whether there was one. Needs the flag `state` and an open scope."""
        self._grants.check_api("state")
        return (await self._calls.call("state_delete", Deleted, scope=scope, key=key)).deleted

    async def state_list(self, scope: StateScope, prefix: str | None = None, limit: int = MAX_PAGE_ITEMS) -> StateKeys:
        """Read the keys of a scope, in order, at most 100. Needs the flag `state` and an open scope."""
        self._grants.check_api("state")
        return await self._calls.call("state_list", StateKeys, scope=scope, prefix=prefix, limit=limit)

    async def get_plugin_storage(self, key: str) -> bytes | None:
        """Read bytes of the runner's plugin, None where there are none. Needs `storage` and `plugin_storage`."""
        return await self._get("plugin", key)

    async def set_plugin_storage(self, key: str, value: bytes) -> None:
        """Keep bytes for the runner's plugin, at most 10 MiB (D-17). Needs `storage` and `plugin_storage`."""
        await self._set("plugin", key, value)

    async def delete_plugin_storage(self, key: str) -> bool:
        """Delete bytes of the plugin; tells whether there were any. Needs `storage` and `plugin_storage`."""
        return await self._delete("plugin", key)

    async def get_plugin_storage_keys(self) -> list[str]:
        """Read all keys of the plugin, in order. Needs `storage` and `plugin_storage`."""
        return await self._keys("plugin")

    async def get_workspace_storage(self, key: str) -> bytes | None:
        """Read bytes of the workspace, None where there are none. Needs `storage` and `workspace_storage`."""
        return await self._get("workspace", key)

    async def set_workspace_storage(self, key: str, value: bytes) -> None:
        """Keep bytes for the workspace, at most 10 MiB (D-17). Needs `storage` and `workspace_storage`."""
        await self._set("workspace", key, value)

    async def delete_workspace_storage(self, key: str) -> bool:
        """Delete bytes of the workspace; tells whether there were any. Needs `storage` and `workspace_storage`."""
        return await self._delete("workspace", key)

    async def get_workspace_storage_keys(self) -> list[str]:
        """Read all keys of the workspace, in order. Needs `storage` and `workspace_storage`."""
        return await self._keys("workspace")

    async def _get(self, area: _Area, key: str) -> bytes | None:
        self._grants.check_storage(area)
        method = f"get_{area}_storage"
        text = (await self._calls.call(method, StorageValue, key=key)).value_base64
        return None if text is None else decode_base64(method, text)

    async def _set(self, area: _Area, key: str, value: bytes) -> None:
        self._grants.check_storage(area)
        if not isinstance(value, bytes | bytearray):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise invalid_argument(f"value: storage keeps bytes, not {type(value).__name__}.")
        if len(value) > MAX_STORAGE_VALUE_BYTES:
            raise too_large(f"value: {len(value)} bytes; a storage value may have {MAX_STORAGE_VALUE_BYTES}.")
        encoded = base64.b64encode(value).decode("ascii")
        await self._calls.call(f"set_{area}_storage", Done, key=key, value_base64=encoded)

    async def _delete(self, area: _Area, key: str) -> bool:
        self._grants.check_storage(area)
        return (await self._calls.call(f"delete_{area}_storage", Deleted, key=key)).deleted

    async def _keys(self, area: _Area) -> list[str]:
        self._grants.check_storage(area)
        return (await self._calls.call(f"get_{area}_storage_keys", StorageKeys)).keys


def _json_size(value: JsonValue) -> int:
    try:
        return len(encode(value))
    except (TypeError, ValueError, RecursionError):
        # No JSON value at all: the check of the parameters says where and why.
        return 0
