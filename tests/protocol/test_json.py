from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runhost.protocol import (
    MAX_INTEGER,
    MAX_JSON_DEPTH,
    MIN_INTEGER,
    AgentInput,
    AgentRunResult,
    JsonObject,
    JsonValue,
    LenientModel,
    StrictModel,
)

values: TypeAdapter[Any] = TypeAdapter(JsonValue)
objects: TypeAdapter[Any] = TypeAdapter(JsonObject)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(MIN_INTEGER, MAX_INTEGER)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
foreign_values = st.recursive(
    st.sampled_from([object(), b"bytes", {1, 2}, 2**63, float("nan"), float("-inf"), 1j, int]) | st.text() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=10,
)


def nested(levels: int, leaf: object = 1) -> object:
    value = leaf
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def fault_of(adapter: TypeAdapter[Any], value: object) -> tuple[str, tuple[str | int, ...], str]:
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(value)
    (fault,) = caught.value.errors()
    return fault["type"], fault["loc"], fault["msg"]


@settings(max_examples=200, deadline=None)
@given(json_values)
def test_json_value_is_accepted_unchanged(value: object) -> None:
    assert values.validate_python(value) == value


@settings(max_examples=200, deadline=None)
@given(foreign_values)
def test_any_other_value_is_accepted_or_refused_never_a_crash(value: object) -> None:
    try:
        values.validate_python(value)
    except ValidationError as error:
        assert error.error_count() == 1  # noqa: PT017 - most values are refused, some are fine


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_number_that_is_not_finite_is_refused_at_its_place(number: float) -> None:
    kind, path, message = fault_of(values, {"a": [1, {"b": number}]})

    assert (kind, path) == ("json_number", ("a", 1, "b"))
    assert "finite" in message


def test_number_too_large_in_json_text_is_refused() -> None:
    with pytest.raises(ValidationError, match="finite"):
        values.validate_json('{"a": 1e999}')


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**5_000], ids=["above", "below", "far"])
def test_integer_beyond_64_bits_is_refused_with_advice(number: int) -> None:
    kind, path, message = fault_of(values, [{"n": number}])

    assert (kind, path) == ("json_integer", (0, "n"))
    assert message == "Integer does not fit 64 bits: send it as a string"


def test_integers_at_the_limits_are_accepted() -> None:
    assert values.validate_python([MIN_INTEGER, MAX_INTEGER]) == [MIN_INTEGER, MAX_INTEGER]


def test_nesting_up_to_the_limit_is_accepted() -> None:
    values.validate_python(nested(MAX_JSON_DEPTH))


@pytest.mark.parametrize("levels", [MAX_JSON_DEPTH + 1, 100_000])
def test_deeper_nesting_is_refused_without_recursion_error(levels: int) -> None:
    kind, path, _ = fault_of(values, nested(levels))

    assert kind == "json_too_deep"
    assert len(path) == MAX_JSON_DEPTH


def test_value_that_contains_itself_is_refused() -> None:
    value: dict[str, object] = {}
    value["self"] = value

    assert fault_of(values, value)[0] == "json_too_deep"


def test_key_that_is_no_string_is_refused() -> None:
    kind, path, _ = fault_of(values, {"a": {1: "x"}})

    assert (kind, path) == ("json_key", ("a",))


@pytest.mark.parametrize("value", [object(), b"x", {1}, 1j, AgentInput()])
def test_foreign_type_is_refused_by_name(value: object) -> None:
    kind, _, message = fault_of(values, {"a": value})

    assert kind == "json_type"
    assert type(value).__name__ in message


def test_subclasses_become_plain_json() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Level(IntEnum):
        HIGH = 3

    value = values.validate_python({Colour.RED: OrderedDict(a=(Level.HIGH, Colour.RED))})

    assert value == {"red": {"a": [3, "red"]}}
    assert [type(part) for part in (*value, value["red"], *value["red"]["a"])] == [str, dict, int, str]


def test_text_with_nul_and_lone_surrogates_is_kept() -> None:
    assert values.validate_python({"a\x00": "\ud83d\x00"}) == {"a\x00": "\ud83d\x00"}


def test_json_is_copied_so_that_later_changes_do_not_reach_it() -> None:
    inner: list[JsonValue] = [1]
    result = AgentRunResult(run_id="r", type="tool.call.started", data={"parameters": inner})

    inner.append(2)

    assert result.data == {"parameters": [1]}


@pytest.mark.parametrize("value", [[], "x", 1, None])
def test_json_object_is_an_object(value: object) -> None:
    assert fault_of(objects, value)[0] == "dict_type"


def test_strict_model_refuses_unknown_fields_and_lenient_drops_them() -> None:
    class Strict(StrictModel):
        a: int = 0

    class Lenient(LenientModel):
        a: int = 0

    with pytest.raises(ValidationError, match="Extra inputs"):
        Strict.model_validate({"b": 1})
    assert Lenient.model_validate({"a": 1, "b": 1}).model_dump() == {"a": 1}


@pytest.mark.parametrize("value", ["1", 1.0, True])
def test_models_do_not_convert_types(value: object) -> None:
    class Counted(StrictModel):
        count: int

    with pytest.raises(ValidationError):
        Counted.model_validate({"count": value})


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AgentInput().text = "later"  # pyright: ignore[reportAttributeAccessIssue]
