"""Plugin and workspace storage (PROTOCOL 9.8, D-17)."""

import base64
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import func, select

from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.methods import storage
from runhost.protocol import ErrorCode, StorageResource
from stores import plugin_storage
from stores import storage_tables as tables
from tests.host_api.conftest import GrantedRun, NewRun


@dataclass(frozen=True)
class Area:
    """The four methods of an area."""

    name: str
    get: MethodDefinition
    set: MethodDefinition
    delete: MethodDefinition
    keys: MethodDefinition

    async def put(self, run: GrantedRun, key: str, value: bytes) -> None:
        await run.ask(self.set, key=key, value_base64=base64.b64encode(value).decode())

    async def read(self, run: GrantedRun, key: str) -> bytes | None:
        encoded = (await run.ask(self.get, key=key)).value_base64
        return None if encoded is None else base64.b64decode(encoded)

    async def listed(self, run: GrantedRun) -> list[str]:
        return (await run.ask(self.keys)).keys


PLUGIN = Area(
    "plugin",
    storage.get_plugin_storage,
    storage.set_plugin_storage,
    storage.delete_plugin_storage,
    storage.get_plugin_storage_keys,
)
WORKSPACE = Area(
    "workspace",
    storage.get_workspace_storage,
    storage.set_workspace_storage,
    storage.delete_workspace_storage,
    storage.get_workspace_storage_keys,
)
both_areas = pytest.mark.parametrize("area", [PLUGIN, WORKSPACE], ids=["plugin", "workspace"])


@both_areas
async def test_bytes_are_read_as_they_were_set(run: GrantedRun, area: Area) -> None:
    assert await area.read(run, "k") is None
    for value in (b"before", b"", b"\0", bytes(range(256)), "日本".encode()):
        await area.put(run, "k", value)
        assert await area.read(run, "k") == value
    assert await area.listed(run) == ["k"]
    assert [(await run.ask(area.delete, key="k")).deleted for _ in range(2)] == [True, False]
    assert await area.read(run, "k") is None
    assert await area.listed(run) == []


@both_areas
async def test_keys_are_listed_in_order_of_code_points(run: GrantedRun, area: Area) -> None:
    keys = ["B", "a", "a b", "é", "日" * 255, "\ufdd0" * 255, "😀"]
    for key in reversed(keys):
        await area.put(run, key, b"x")
    assert await area.listed(run) == keys
    assert [await area.read(run, key) for key in keys] == [b"x"] * len(keys)


async def test_value_of_10_mib_fits_and_not_a_byte_more(run: GrantedRun) -> None:
    fits = b"\x5a" * (10 * 1024 * 1024)
    await PLUGIN.put(run, "k", fits)
    assert await PLUGIN.read(run, "k") == fits
    with pytest.raises(HostCallError) as refusal:
        await PLUGIN.put(run, "k", fits + b"x")
    assert refusal.value.code is ErrorCode.PAYLOAD_TOO_LARGE


NO_BASE64 = ["a", "YQ", "YQ=", "YQ==YQ==", "YQ==\n", " YQ==", "Y-_=", "日本", "\x00", "====", "Y!Q="]


@both_areas
async def test_what_is_not_strict_base64_is_refused(run: GrantedRun, area: Area) -> None:
    for text in NO_BASE64:
        with pytest.raises(HostCallError) as refusal:
            await run.ask(area.set, key="k", value_base64=text)
        assert (refusal.value.code, refusal.value.details) == (ErrorCode.INVALID_ARGUMENT, {"field": "value_base64"})
    assert await area.listed(run) == []


@both_areas
async def test_area_that_is_full_takes_no_new_key(run: GrantedRun, area: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_storage, "MAX_KEYS", 2)
    for key in ("1", "2", "1"):
        await area.put(run, key, key.encode())
    with pytest.raises(HostCallError) as refusal:
        await area.put(run, "3", b"")
    assert refusal.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert await area.listed(run) == ["1", "2"]


async def test_the_two_areas_are_apart(run: GrantedRun) -> None:
    await PLUGIN.put(run, "k", b"private")
    assert await WORKSPACE.read(run, "k") is None
    await WORKSPACE.put(run, "k", b"shared")
    assert await PLUGIN.read(run, "k") == b"private"


async def test_pm_8_plugin_area_is_that_plugins_alone(run: GrantedRun, new_run: NewRun) -> None:
    """PM-8: by the identity in the snapshot; conversations of the workspace share it."""
    other = run.narrowed(plugin_identity="somebody/else")
    await PLUGIN.put(run, "k", b"private")
    await WORKSPACE.put(run, "k", b"shared")
    assert (await run.ask(PLUGIN.get, key="k", authorization=other)).value_base64 is None
    assert (await run.ask(PLUGIN.keys, authorization=other)).keys == []
    assert not (await run.ask(PLUGIN.delete, key="k", authorization=other)).deleted
    assert (await run.ask(WORKSPACE.keys, authorization=other)).keys == ["k"]
    assert await PLUGIN.read(await new_run(conversation_id="c2", bot_id="b2"), "k") == b"private"


@both_areas
async def test_pm_8_another_workspace_has_areas_of_its_own(run: GrantedRun, new_run: NewRun, area: Area) -> None:
    foreign = await new_run(workspace_id="w2")
    await area.put(foreign, "k", b"theirs")
    assert await area.read(run, "k") is None
    assert await area.listed(run) == []
    assert not (await run.ask(area.delete, key="k")).deleted
    assert await area.read(foreign, "k") == b"theirs"


@both_areas
async def test_pm_8_area_that_is_not_granted_is_refused(run: GrantedRun, area: Area) -> None:
    granted = StorageResource(plugin_storage=area is not PLUGIN, workspace_storage=area is not WORKSPACE)
    narrowed = run.narrowed(resources=run.authorization.resources.model_copy(update={"storage": granted}))
    cases: list[tuple[MethodDefinition, dict[str, Any]]] = [
        (area.get, {"key": "k"}),
        (area.set, {"key": "k", "value_base64": ""}),
        (area.delete, {"key": "k"}),
        (area.keys, {}),
    ]
    for method, params in cases:
        with pytest.raises(HostCallError) as refusal:
            await run.ask(method, authorization=narrowed, **params)
        assert refusal.value.code is ErrorCode.UNAUTHORIZED
    async with run.host.engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(tables.plugin_storage)) == 0
