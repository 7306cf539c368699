"""JSON values, and the base models that say how strictly an object is read (PROTOCOL 7.2, P-V9).

A JSON value is a string, a finite number, a boolean, null, or a list or object of such values. Integers fit
64 bits and nesting ends at `MAX_JSON_DEPTH`, so that everyone can store and send on what is accepted here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import pydantic
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, PydanticKnownError, core_schema

MAX_JSON_DEPTH: Final = 64
MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**63 - 1

Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
"""A whole number from 0 that fits 64 bits."""

Integer: TypeAlias = Annotated[int, Field(ge=MIN_INTEGER, le=MAX_INTEGER)]
"""A whole number that fits 64 bits, sign included."""

EpochSeconds: TypeAlias = Annotated[int, Field(ge=0, le=253_402_300_799)]
"""Seconds since 1970 in UTC, up to the end of the year 9999: milliseconds sent by mistake are refused."""


class StrictModel(BaseModel):
    """Frozen; unknown fields are refused (result payloads, pages, return models, errors, manifests: P-V9)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class LenientModel(BaseModel):
    """Frozen; unknown fields are dropped, so that an older reader understands a newer writer (P-V9, P-E2)."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """Annotation: how unknown fields are met in a model and in everything below it.

    `Annotated[AgentInput, UnknownFields("forbid")]` is an input as posted, with `"ignore"` one as a runner
    reads it. Model instances pass untouched. Errors keep the path of the field.
    """

    treatment: Literal["forbid", "ignore"]

    def __get_pydantic_core_schema__(self, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        def validate(value: object, inner: core_schema.ValidatorFunctionWrapHandler) -> object:
            if isinstance(value, dict):
                return source.model_validate(value, extra=self.treatment)
            return inner(value)

        return core_schema.no_info_wrap_validator_function(validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler(schema)
        if self.treatment == "ignore":
            return described
        return handler.resolve_ref_schema(described) | {"additionalProperties": False}


class _NotJson(Exception):
    """Says only that a value is unfit; `_find_fault` says where and why."""


def _copy(value: object, room: int) -> pydantic.JsonValue:
    """Copy a JSON value, so that later changes by its owner do not reach us.

    Written in Python and not as a recursive pydantic schema: about as fast, with one clear error instead of
    one per type a value could have been.

    Raises:
        _NotJson: It is none, or nested deeper than `room`.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return cast("str | bool | None", value)
    if kind is dict:
        if not room:
            raise _NotJson
        fields: dict[str, pydantic.JsonValue] = {}
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str:
                key = _plain_key(key)
            fields[key] = item if type(item) is str else _copy(item, room - 1)
        return fields
    if kind is list:
        if not room:
            raise _NotJson
        return [item if type(item) is str else _copy(item, room - 1) for item in cast("list[object]", value)]
    if kind is int:
        if MIN_INTEGER <= cast("int", value) <= MAX_INTEGER:
            return cast("int", value)
        raise _NotJson
    if kind is float:
        if math.isfinite(cast("float", value)):
            return cast("float", value)
        raise _NotJson
    return _copy(_plain(value), room)


def _plain(value: object) -> object:
    """Turn a subclass instance (an enum member, an ordered dict) or a tuple into the JSON type it stands for.

    Raises:
        _NotJson: There is none.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, dict):
        return dict(cast("dict[object, object]", value))
    if isinstance(value, list | tuple):
        return list(cast("list[object]", value))
    raise _NotJson


def _plain_key(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise _NotJson


def _find_fault(value: object, room: int) -> tuple[list[str | int], PydanticCustomError]:
    """Say where a value that `_copy` refused is at fault, and why."""
    if isinstance(value, dict | list | tuple):
        return _find_fault_within(cast("dict[object, object] | list[object]", value), room)
    if isinstance(value, int):
        return [], PydanticCustomError("json_integer", "Integer does not fit 64 bits: send it as a string")
    if isinstance(value, float):
        return [], PydanticCustomError("json_number", "Number must be finite: NaN and infinity are no JSON")
    name = type(value).__name__[:64]
    return [], PydanticCustomError("json_type", "{type_name} is no JSON value", {"type_name": name})


def _find_fault_within(
    value: dict[object, object] | list[object], room: int
) -> tuple[list[str | int], PydanticCustomError]:
    if not room:
        limit = {"limit": MAX_JSON_DEPTH}
        return [], PydanticCustomError("json_too_deep", "JSON is nested deeper than {limit} levels", limit)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if not isinstance(key, str | int) or (isinstance(value, dict) and isinstance(key, int)):
            break
        try:
            _copy(item, room - 1)
        except _NotJson:
            path, fault = _find_fault(item, room - 1)
            return [key, *path], fault
    return [], PydanticCustomError("json_key", "Object keys must be strings")


def _check_value(value: object) -> pydantic.JsonValue:
    try:
        return _copy(value, MAX_JSON_DEPTH)
    except _NotJson:
        path, fault = _find_fault(value, MAX_JSON_DEPTH)
        detail = InitErrorDetails(type=fault, loc=tuple(path), input=None)
        raise ValidationError.from_exception_data("JsonValue", [detail]) from None


def _check_object(value: object) -> pydantic.JsonValue:
    if isinstance(value, dict):
        return _check_value(cast("object", value))
    raise PydanticKnownError("dict_type")


@dataclass(frozen=True, slots=True)
class _JsonSchema:
    """Puts a check of ours in the place of pydantic's own `JsonValue`."""

    check: Callable[[object], pydantic.JsonValue]
    json_schema: tuple[tuple[str, Any], ...] = ()

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.json_schema)


JsonValue: TypeAlias = Annotated[pydantic.JsonValue, _JsonSchema(_check_value)]
"""Any JSON value; validation copies it."""

JsonObject: TypeAlias = Annotated[
    dict[str, pydantic.JsonValue],
    _JsonSchema(_check_object, (("type", "object"), ("additionalProperties", True))),
]
"""An object of JSON values; validation copies it."""
