"""Host-owned state of a run's scopes (PROTOCOL 9.7, HOST 10, D-43)."""

from typing import Any

import pytest
from sqlalchemy import select

from activities.state_scopes import state_scopes
from host_api.authorization import StateContext
from host_api.definition import MethodDefinition
from host_api.errors import HostCallError
from host_api.methods.state import state_delete, state_get, state_list, state_set
from runhost.protocol import ErrorCode
from stores.state import StateStore
from stores.tables import runner_state
from tests.fixtures.grants import SCOPES
from tests.host_api.conftest import GrantedRun, NewRun

CONVERSATION: dict[str, Any] = {"scope": "conversation"}


async def keys(run: GrantedRun, **params: Any) -> list[str]:
    return (await run.ask(state_list, **CONVERSATION | params)).keys


VALUES: list[Any] = [
    None,
    False,
    0,
    -(2**63),
    1.5,
    "",
    "a\x00b",
    "\ud800 alone",
    "\ufdd0",
    "日本語 👩‍👩‍👧",
    [],
    {"a\x00": [{"\udfff": None}]},
]


@pytest.mark.parametrize("scope", SCOPES)
async def test_d_31_value_is_read_as_it_was_set(run: GrantedRun, scope: str) -> None:
    read: list[Any] = []
    for value in VALUES:
        await run.ask(state_set, scope=scope, key="k", value=value)
        read.append((await run.ask(state_get, scope=scope, key="k")).value)
    assert read == VALUES
    assert (await run.ask(state_list, scope=scope)).keys == ["k"]


async def test_value_that_was_never_set_is_null(run: GrantedRun) -> None:
    assert (await run.ask(state_get, key="k", **CONVERSATION)).value is None


async def test_delete_says_whether_there_was_something(run: GrantedRun) -> None:
    await run.ask(state_set, key="k", value=None, **CONVERSATION)
    assert [(await run.ask(state_delete, key="k", **CONVERSATION)).deleted for _ in range(2)] == [True, False]
    assert await keys(run) == []


@pytest.mark.parametrize("name", ["conversation_id", "external.conversation_id"])
@pytest.mark.parametrize("other", ["conversation_id", "external.conversation_id"])
async def test_h_s5_alias_holds_in_every_operation(run: GrantedRun, name: str, other: str) -> None:
    await run.ask(state_set, key=name, value="theirs", **CONVERSATION)
    assert (await run.ask(state_get, key=other, **CONVERSATION)).value == "theirs"
    assert await keys(run, prefix=other) == ["external.conversation_id"]
    assert (await run.ask(state_delete, key=other, **CONVERSATION)).deleted


async def test_keys_are_listed_in_order_of_code_points(run: GrantedRun) -> None:
    for key in ("b", "B", "a.2", "a.10", "é", "日", "\ufdd0", "😀"):
        await run.ask(state_set, key=key, value=1, **CONVERSATION)
    assert await keys(run) == ["B", "a.10", "a.2", "b", "é", "日", "\ufdd0", "😀"]


async def test_prefix_is_taken_as_it_stands(run: GrantedRun) -> None:
    every = ["a%b", "a\\b", "a_b", "axb"]
    for key in every:
        await run.ask(state_set, key=key, value=1, **CONVERSATION)
    expected = {"a_": ["a_b"], "a%": ["a%b"], "a\\": ["a\\b"], "a": every, "a\x00": [], "": every}
    assert {prefix: await keys(run, prefix=prefix) for prefix in expected} == expected


async def test_list_has_at_most_100_keys_and_says_that_there_are_more(run: GrantedRun) -> None:
    for number in range(101):
        await run.ask(state_set, key=f"{number:03}", value=number, **CONVERSATION)
    listed = await run.ask(state_list, limit=1_000, **CONVERSATION)
    assert (listed.keys, listed.has_more) == ([f"{number:03}" for number in range(100)], True)
    listed = await run.ask(state_list, prefix="10", **CONVERSATION)
    assert (listed.keys, listed.has_more) == (["100"], False)


@pytest.mark.parametrize(("letter", "bytes_each"), [("x", 1), ("日", 3)])
async def test_value_of_256_kib_fits_and_not_a_byte_more(run: GrantedRun, letter: str, bytes_each: int) -> None:
    room = 256 * 1024 - len('""')
    fits = letter * (room // bytes_each) + "x" * (room % bytes_each)
    await run.ask(state_set, key="k", value=fits, **CONVERSATION)
    with pytest.raises(HostCallError) as refusal:
        await run.ask(state_set, key="k", value=fits + "x", **CONVERSATION)
    assert refusal.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert (await run.ask(state_get, key="k", **CONVERSATION)).value == fits


async def test_longest_key_fits_whatever_its_characters_are(run: GrantedRun) -> None:
    for key in ("k" * 255, "日" * 255, "\ufdd0" * 255):
        await run.ask(state_set, key=key, value=key, **CONVERSATION)
        assert (await run.ask(state_get, key=key, **CONVERSATION)).value == key


@pytest.mark.parametrize(
    ("event", "shared"),
    [
        ({"conversation_id": "c2"}, ["actor", "subject", "runner"]),
        ({"thread_id": "t2"}, ["actor", "subject", "runner"]),
        ({"actor": {"actor_type": "user", "actor_id": "u2"}}, ["conversation", "subject", "runner"]),
        ({"subject": {"subject_type": "message", "subject_id": "m2"}}, ["conversation", "actor", "runner"]),
        ({"bot_id": "b2"}, []),
        ({"workspace_id": "w2"}, []),
        ({}, SCOPES),
    ],
    ids=str,
)
async def test_pm_8_state_is_shared_with_whoever_has_the_scope_alone(
    run: GrantedRun, new_run: NewRun, event: dict[str, Any], shared: list[str]
) -> None:
    """PM-8, H-S2, H-S9."""
    other = await new_run(**event)
    for scope in SCOPES:
        await run.ask(state_set, scope=scope, key="k", value="kept")
    seen = [scope for scope in SCOPES if (await other.ask(state_get, scope=scope, key="k")).value == "kept"]
    assert seen == shared
    assert [scope for scope in SCOPES if (await other.ask(state_list, scope=scope)).keys] == shared
    assert [s for s in SCOPES if (await other.ask(state_delete, scope=s, key="k")).deleted] == shared


async def test_pm_8_scope_key_of_another_workspace_opens_nothing(run: GrantedRun, new_run: NewRun) -> None:
    """The key alone would do; the workspace is compared all the same."""
    foreign = await new_run(workspace_id="w2")
    await foreign.ask(state_set, key="k", value="secret", **CONVERSATION)
    stolen = run.narrowed(state_context=foreign.authorization.state_context)
    where = CONVERSATION | {"authorization": stolen}
    assert (await run.ask(state_get, key="k", **where)).value is None
    assert (await run.ask(state_list, **where)).keys == []
    assert not (await run.ask(state_delete, key="k", **where)).deleted


@pytest.mark.parametrize("scope", SCOPES)
async def test_pm_8_scope_that_is_off_is_refused(run: GrantedRun, scope: str) -> None:
    context = run.authorization.state_context
    left = {name: key for name, key in context.scope_keys.items() if name != scope}
    narrowed = run.narrowed(state_context=StateContext(scope_keys=left, binding_identity=context.binding_identity))
    cases: list[tuple[MethodDefinition, dict[str, Any]]] = [
        (state_get, {"key": "k"}),
        (state_set, {"key": "k", "value": 1}),
        (state_delete, {"key": "k"}),
        (state_list, {}),
    ]
    for method, params in cases:
        with pytest.raises(HostCallError) as refusal:
            await run.ask(method, authorization=narrowed, scope=scope, **params)
        assert refusal.value.code is ErrorCode.UNAUTHORIZED


async def test_row_says_whose_it_is(run: GrantedRun) -> None:
    await run.ask(state_set, key="k", value=1, **CONVERSATION)
    async with run.host.engine.connect() as connection:
        row = (await connection.execute(select(runner_state))).mappings().one()
    assert (row["workspace_id"], row["conversation_id"], row["run_id"]) == ("w1", "c1", run.run_id)
    assert (row["runner_id"], row["binding_identity"]) == (run.row.runner_id, "agent:a1")


async def test_what_is_set_is_in_the_context_of_the_next_run(run: GrantedRun) -> None:
    for key in ("conversation_id", "\ufdd0"):
        await run.ask(state_set, key=key, value=["\x00"], **CONVERSATION)
    row = run.row
    scopes = state_scopes(
        row.envelope,
        run.authorization.state_policy,
        workspace_id=row.workspace_id,
        runner_id=row.runner_id,
        agent_id=row.agent_id,
        binding_id=row.binding_id,
    )
    async with run.host.engine.connect() as connection:
        snapshot = await StateStore(connection).snapshot(scopes.keys)
    assert snapshot["conversation"] == {"external.conversation_id": ["\x00"], "\ufdd0": ["\x00"]}
