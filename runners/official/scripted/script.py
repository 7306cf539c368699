"""The script language of the scripted runner.

A script is a list of steps, a step an object with one key:

| Step | What the runner does |
| --- | --- |
| `{"delta": "text"}` | streams a piece of a message |
| `{"message": "text"}` | completes a message |
| `{"echo": true}` | streams the input's text word by word, then completes it as a message |
| `{"state": {"scope": ..., "key": ..., "value": ...}}` | updates host state |
| `{"artifact": {"text": ..., "name": ...}}` | creates an artifact; see `ArtifactStep` |
| `{"result": {"type": ..., "data": {...}}}` | yields this result unchecked, right or wrong |
| `{"malformed": anything}` | yields this value, which is no result at all |
| `{"flood": n}` | streams n pieces as fast as it can |
| `{"pause": seconds}` | waits |
| `{"silence": true}` | waits until it is cancelled |
| `{"deaf": seconds}` | waits and does not heed cancellation meanwhile |
| `{"block": seconds}` | holds its event loop, as no runner should |
| `{"crash": "message"}` | raises an exception |
| `{"completed": "stop"}` | ends the run well; see `CompletedStep` for the long form |
| `{"failed": {"code": ..., "error": ..., "retryable": false}}` | ends the run without success |
| `{"after_end": [steps]}` | goes on after the end, as no runner should; only there, and last |
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from runhost.protocol import (
    JsonObject,
    JsonValue,
    RunFailedData,
    StateUpdatedData,
    StrictModel,
    Usage,
    describe_validation,
)

MAX_STEPS: Final = 10_000
MAX_SECONDS: Final = 86_400.0
MAX_FLOOD: Final = 10_000_000

Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]


class CompletedStep(StrictModel):
    """Long form of `completed`: with a last message, or with token usage."""

    finish_reason: str = "stop"
    message: str | None = None
    usage: Usage | None = None


class ArtifactStep(StrictModel):
    """An artifact whose content is a text."""

    artifact_type: str = "file"
    text: str = ""
    name: str | None = None
    mime_type: str | None = "text/plain"
    artifact_id: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step that can be played; `value` has the type that `_VALUES` gives for `kind`."""

    kind: str
    value: Any


class UnplayableScript(Exception):
    """The configuration holds no script that can be played; `code` names the step that is at fault."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        super().__init__(reason)


_VALUES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "delta": TypeAdapter(str),
    "message": TypeAdapter(str),
    "echo": TypeAdapter(Literal[True]),
    "state": TypeAdapter(StateUpdatedData),
    "artifact": TypeAdapter(ArtifactStep),
    "result": TypeAdapter(JsonObject),
    "malformed": TypeAdapter(JsonValue),
    "flood": TypeAdapter(Annotated[int, Field(ge=1, le=MAX_FLOOD)]),
    "pause": TypeAdapter(Seconds),
    "silence": TypeAdapter(Literal[True]),
    "deaf": TypeAdapter(Seconds),
    "block": TypeAdapter(Seconds),
    "crash": TypeAdapter(str),
    "completed": TypeAdapter(str | CompletedStep),
    "failed": TypeAdapter(RunFailedData),
    "after_end": TypeAdapter(list[JsonValue]),
}
ENDS: Final = frozenset({"completed", "failed"})
DEFAULT_SCRIPT: Final = (Step("echo", True), Step("completed", "stop"))


def read_script(config: JsonObject) -> tuple[Step, ...]:
    """Read `script` of a configuration; echo the input if there is none.

    Raises:
        UnplayableScript: it is no script. Nothing of it is played then.
    """
    script = config.get("script")
    if script is None or script == "":
        return DEFAULT_SCRIPT
    if isinstance(script, str):
        try:
            script = json.loads(script)
        except (ValueError, RecursionError) as error:
            raise UnplayableScript("script.invalid", f"config.script: no valid JSON: {error}") from None
    return tuple(_read_steps(script, "config.script", after_end=False))


def read_timeout(config: JsonObject) -> float | None:
    """Read `timeout` of a configuration, in seconds; None or 0 means no limit.

    Raises:
        UnplayableScript: it is no number from 0 to a day.
    """
    timeout = config.get("timeout")
    if timeout is None:
        return None
    try:
        return TypeAdapter(Seconds).validate_python(timeout, strict=True) or None
    except ValidationError as error:
        raise UnplayableScript("timeout.invalid", f"config.{describe_validation(error, below='timeout')}") from None


def _read_steps(script: object, place: str, *, after_end: bool) -> Iterator[Step]:
    if not isinstance(script, list) or len(script) > MAX_STEPS:
        raise UnplayableScript("script.invalid", f"{place}: must be a list of at most {MAX_STEPS} steps")
    ended = after_end
    for index, item in enumerate(script):
        step = _read_step(item, f"{place}[{index}]")
        if step.kind == "after_end":
            if not ended or after_end or index != len(script) - 1:
                raise _unplayable(step.kind, f"{place}[{index}]", "must be the last step, right after the end")
            yield from _read_steps(step.value, f"{place}[{index}].after_end", after_end=True)
            continue
        if ended and not after_end:
            raise _unplayable(step.kind, f"{place}[{index}]", "follows the end; put it into 'after_end'")
        ended = ended or step.kind in ENDS
        yield step


def _read_step(item: object, place: str) -> Step:
    if not isinstance(item, dict) or len(item) != 1:
        raise UnplayableScript(
            "script.invalid", f"{place}: a step is an object with one key, such as {{'delta': 'text'}}"
        )
    kind, value = next(iter(item.items()))
    adapter = _VALUES.get(kind) if isinstance(kind, str) else None
    if adapter is None:
        raise UnplayableScript(
            "script.unknown_step", f"{place}: {kind!r:.60} is no step; steps are {', '.join(_VALUES)}"
        )
    try:
        return Step(kind, adapter.validate_python(value, strict=True))
    except ValidationError as error:
        raise _unplayable(kind, place, describe_validation(error, below=kind)) from None


def _unplayable(kind: str, place: str, reason: str) -> UnplayableScript:
    return UnplayableScript(f"script.{kind}.invalid", f"{place}: {reason}")
