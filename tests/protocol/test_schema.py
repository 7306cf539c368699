import json

from pydantic import BaseModel

from runhost import protocol
from runhost.protocol.schema import SCHEMA_PATH, build_schema, render_schema


def test_committed_schema_is_what_the_models_say() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == render_schema(), "run python -m runhost.protocol.schema"


def test_schema_describes_every_public_model() -> None:
    models = {
        name
        for name in protocol.__all__
        if isinstance(member := getattr(protocol, name), type) and issubclass(member, BaseModel)
    }

    assert models - {"StrictModel", "LenientModel"} <= set(build_schema()["$defs"])


def test_schema_shows_what_is_strict_as_posted() -> None:
    definitions = build_schema()["$defs"]

    assert definitions["AgentEventEnvelope"]["properties"]["input"]["additionalProperties"] is False
    assert "additionalProperties" not in definitions["AgentInput"]
    assert definitions["MessageDeltaData"]["additionalProperties"] is False


def test_schema_is_plain_json() -> None:
    assert json.loads(render_schema()) == build_schema()
