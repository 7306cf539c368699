"""Text that Postgres refuses comes back as it was sent (D-31)."""

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from runhost.protocol import JsonObject
from stores.escaping import escape, restore
from stores.jsonb import digest, dumps, loads

anything = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\ud800\udfff\ufdd0"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=8,
)


@given(anything)
def test_restored_text_is_the_text_that_was_escaped(value: str) -> None:
    escaped = escape(value)
    assert "\x00" not in escaped
    escaped.encode()  # no lone surrogate is left
    assert restore(escaped) == value


@given(json_values)
def test_json_survives_dumps_and_loads(value: object) -> None:
    assert loads(dumps(value)) == value  # type: ignore[arg-type]


@given(st.dictionaries(anything, st.integers(0, 9), max_size=5))
def test_digest_ignores_the_order_of_keys(value: dict[str, int]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))  # type: ignore[arg-type]


async def test_postgres_stores_what_it_would_refuse(engine: AsyncEngine) -> None:
    value: JsonObject = {"nul\x00key": "a\x00b\ud800c\ufdd0d", "marker": "\ufdd00000"}
    async with engine.connect() as connection:
        stored = await connection.scalar(text("SELECT CAST(:value AS jsonb)::text"), {"value": dumps(value)})
    assert loads(stored) == value
