"""Generated JSON Schema of the protocol: `python -m runhost.protocol.schema` writes `schema.json` anew.

One document with everything public under `$defs`, for authors in other languages. A test fails when the file
is not what the models say.
"""

import json
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from runhost import protocol

SCHEMA_PATH: Final = Path(__file__).with_name("schema.json")
_BASE_MODELS: Final = (protocol.StrictModel, protocol.LenientModel)


def build_schema() -> dict[str, Any]:
    """Return the schema of every public model and enumeration, by name and in a fixed order."""
    public = sorted(
        (member for member in vars(protocol).values() if _is_described(member)),
        key=lambda member: member.__name__,
    )
    _, schema = TypeAdapter.json_schemas(
        [(member.__name__, "validation", TypeAdapter[Any](member)) for member in public],
        ref_template="#/$defs/{model}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Protocol v1",
        **schema,
    }


def render_schema() -> str:
    """Return the text of `schema.json`."""
    return json.dumps(build_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _is_described(member: object) -> bool:
    return isinstance(member, type) and issubclass(member, BaseModel | Enum) and member not in _BASE_MODELS


if __name__ == "__main__":
    SCHEMA_PATH.write_text(render_schema(), encoding="utf-8")
