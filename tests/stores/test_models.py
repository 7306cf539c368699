"""Models of a workspace."""

from typing import Any

import pytest

from stores.errors import ModelNotFound, SecretNotKept
from stores.models import ModelRow, ModelStore
from tests.fixtures.host import WORKSPACE, Host
from tests.stores.grants import run_with, taken_from

MODEL = {"model_id": "m1", "name": "One", "base_url": "https://models.example/v1", "model_name": "one"}
SECRET = "sk-very-secret"


async def put(host: Host, workspace: str = WORKSPACE, **fields: Any) -> ModelRow:
    async with host.engine.begin() as connection:
        return await ModelStore(connection, workspace).put(MODEL | fields)


async def get(host: Host, model_id: str = "m1", workspace: str = WORKSPACE) -> ModelRow:
    async with host.engine.connect() as connection:
        return await ModelStore(connection, workspace).get(model_id)


async def test_model_is_read_as_it_was_put(host: Host) -> None:
    made = await put(
        host,
        model_type="rerank",
        api_key=SECRET,
        context_window_tokens=8_192,
        default_args={"temperature": 0.5, "stop": ["\0"]},
        timeout_seconds=1.5,
    )
    assert made == await get(host)
    assert (made.model_type, made.api_key, made.context_window_tokens) == ("rerank", SECRET, 8_192)
    assert (made.default_args, made.timeout_seconds, made.enabled) == ({"temperature": 0.5, "stop": ["\0"]}, 1.5, True)


async def test_key_is_in_no_repr(host: Host) -> None:
    assert SECRET not in repr(await put(host, api_key=SECRET))


@pytest.mark.parametrize(("again", "kept"), [({}, SECRET), ({"api_key": None}, None), ({"api_key": "new"}, "new")])
async def test_key_stays_when_left_out_and_goes_with_null(host: Host, again: dict[str, Any], kept: str | None) -> None:
    await put(host, api_key=SECRET)
    assert (await put(host, name="Other", **again)).api_key == kept


async def test_key_is_not_kept_for_another_address(host: Host) -> None:
    await put(host, api_key=SECRET)
    with pytest.raises(SecretNotKept, match="'m1'"):
        await put(host, base_url="https://elsewhere.example/v1")
    assert (await get(host)).base_url == MODEL["base_url"]
    assert (await put(host, base_url="https://elsewhere.example/v1", api_key=None)).api_key is None


async def test_keyless_model_moves_freely(host: Host) -> None:
    await put(host)
    assert (await put(host, base_url="http://localhost:1/v1")).base_url == "http://localhost:1/v1"


async def test_models_of_workspaces_are_apart(host: Host) -> None:
    await put(host, api_key=SECRET)
    with pytest.raises(ModelNotFound, match="'m1'"):
        await get(host, workspace="other")
    theirs = await put(host, "other", base_url="https://theirs.example")
    assert (theirs.api_key, (await get(host)).base_url) == (None, MODEL["base_url"])
    async with host.engine.begin() as connection:
        await ModelStore(connection, "other").delete("m1")
    assert (await get(host)).api_key == SECRET


async def test_list_is_bounded_and_in_order(host: Host) -> None:
    for model_id in ("b", "c", "a"):
        await put(host, model_id=model_id)
    async with host.engine.connect() as connection:
        models = ModelStore(connection, WORKSPACE)
        assert [model.model_id for model in await models.list(limit=2)] == ["a", "b"]
        assert [model.model_id for model in await models.list(after="b", limit=2)] == ["c"]


@pytest.mark.parametrize("way", ["delete", "disable"])
async def test_d_15_model_that_goes_is_taken_back_from_open_runs(host: Host, way: str) -> None:
    await put(host)
    holder = await run_with(host, models=[{"model_id": "m1"}, {"model_id": "m2"}])
    other = await run_with(host, models=[{"model_id": "m2"}])
    async with host.engine.begin() as connection:
        models = ModelStore(connection, WORKSPACE)
        await (models.delete("m1") if way == "delete" else models.put(MODEL | {"enabled": False}))
    assert await taken_from(host, holder) == [("model", "m1")]
    assert await taken_from(host, other) == []


async def test_model_that_is_not_there_cannot_be_deleted(host: Host) -> None:
    async with host.engine.connect() as connection:
        with pytest.raises(ModelNotFound, match="'m1'"):
            await ModelStore(connection, WORKSPACE).delete("m1")
