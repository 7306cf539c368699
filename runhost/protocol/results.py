"""The result stream: its envelope, and how what a runner yields is read (PROTOCOL 7 and 8, D-23, D-28).

`parse_result` reads the envelope, `validate_payload` the payload. Two exceptions say what to do with a result
that cannot be used: `InvalidPayload` drops the result and the run goes on, `MalformedResult` fails the run.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, cast

from pydantic import Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from runhost.protocol.content import MessageChunk, Usage
from runhost.protocol.errors import RunFailureCode, describe_faults, describe_validation, printable
from runhost.protocol.identifiers import MAX_ID_LENGTH, Code
from runhost.protocol.json import EpochSeconds, Integer, JsonObject, StrictModel
from runhost.protocol.payloads import (
    OUTPUT_TYPES,
    STRICT_PAYLOADS,
    ActionRequestedData,
    ArtifactCreatedData,
    MessageCompletedData,
    MessageDeltaData,
    ResultType,
    RunCompletedData,
    RunFailedData,
    StateUpdatedData,
    ToolCallCompletedData,
    ToolCallStartedData,
)

__all__ = [
    "EXCERPT_CHARACTERS",
    "MAX_INLINE_ARTIFACT_BYTES",
    "MAX_INLINE_TEXT_BYTES",
    "MAX_RESULT_BYTES",
    "MAX_STATE_VALUE_BYTES",
    "OUTPUT_TYPES",
    "STRICT_PAYLOADS",
    "ActionRequestedData",
    "AgentRunResult",
    "ArtifactCreatedData",
    "InvalidPayload",
    "MalformedResult",
    "MessageCompletedData",
    "MessageDeltaData",
    "ParsedResult",
    "PlainDelta",
    "ResultType",
    "RunCompletedData",
    "RunFailedData",
    "StateUpdatedData",
    "ToolCallCompletedData",
    "ToolCallStartedData",
    "decode_content",
    "parse_result",
    "read_delta",
    "validate_payload",
]

MAX_RESULT_BYTES: Final = 2 * 1024 * 1024
MAX_INLINE_TEXT_BYTES: Final = 256 * 1024
EXCERPT_CHARACTERS: Final = 10_000
MAX_INLINE_ARTIFACT_BYTES: Final = 1024 * 1024
MAX_STATE_VALUE_BYTES: Final = 256 * 1024

_OPTIONAL_FIELDS: Final = frozenset({"sequence", "timestamp", "usage"})
_MAX_SHOWN_NAMES: Final = 3


class AgentRunResult(StrictModel):
    """One thing a runner yields (PROTOCOL 7.1).

    Attributes:
        run_id: The run it belongs to.
        type: A `ResultType`, or any other name of at most 100 characters.
        data: Payload, by type.
        sequence: Number within the run from 1, in the order of yielding.
        timestamp: When it was yielded.
        usage: Tokens that led to it (D-32).
    """

    run_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_LENGTH)]
    type: Code
    data: JsonObject = Field(default_factory=dict)
    sequence: Integer | None = None
    timestamp: EpochSeconds | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ParsedResult:
    """A result whose envelope could be read.

    Attributes:
        result: The result; parts that could not be used are null.
        warnings: What was wrong with them, without values.
    """

    result: AgentRunResult
    warnings: tuple[str, ...] = ()


class InvalidPayload(Exception):
    """The payload does not fit its type: drop the result, warn, go on with the run (P-V1).

    Attributes:
        reason: Which fields are at fault, at most 400 characters, no values.
        result: The result; its `data` is empty when it was no JSON object.
    """

    def __init__(self, reason: str, result: AgentRunResult) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result


class MalformedResult(Exception):
    """What the runner yielded breaks the protocol: fail the run (P-V4, P-V5, P-V7, P-V11).

    Attributes:
        code: Failure code for the run.
        reason: What is wrong, at most 400 characters, no values.
    """

    def __init__(self, code: RunFailureCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class _DeltaResult(StrictModel):
    """The envelope and the payload of a delta in one model; without usage, which few deltas carry."""

    run_id: str
    type: Literal["message.delta"]
    data: MessageDeltaData
    sequence: Integer | None = None
    timestamp: EpochSeconds | None = None
    usage: None = None


class PlainDelta(NamedTuple):
    """A delta that needs no second look.

    Attributes:
        chunk: Its payload.
        data: The same as it was yielded.
        sequence: Its number, if it has one.
    """

    chunk: MessageChunk
    data: JsonObject
    sequence: int | None


def read_delta(value: object, *, run_id: str) -> PlainDelta | None:
    """Read the commonest result in a single validation, which costs half of `parse_result` and `validate_payload`.

    Returns None for everything that is no delta, or at which anything is unusual: those two then say what.
    """
    fields = cast("object", value.__dict__) if type(value) is AgentRunResult else value
    if type(fields) is not dict or cast("dict[str, object]", fields).get("type") != ResultType.MESSAGE_DELTA:
        return None
    try:
        delta = _DeltaResult.model_validate(fields)
    except ValidationError:
        return None
    if delta.run_id != run_id:
        return None
    return PlainDelta(delta.data.chunk, cast("dict[str, JsonObject]", fields)["data"], delta.sequence)


def parse_result(value: object, *, run_id: str | None = None) -> ParsedResult:
    """Read the envelope of whatever a runner yielded; never raises anything but the two below.

    Args:
        value: An `AgentRunResult`, a mapping with its fields, or rubbish.
        run_id: The run that is being read. Fills a missing `run_id`; a different one is a protocol error.

    Raises:
        MalformedResult: No envelope, no usable type or run id, or another run's id (P-V4, P-V5).
        InvalidPayload: `data` is no JSON object (P-V1).
    """
    fields = _fields(value)
    if run_id is not None:
        given = fields.setdefault("run_id", run_id)
        if given is None:
            fields["run_id"] = run_id
        elif isinstance(given, str) and given != run_id:
            raise _malformed("run_id: the result belongs to another run")
    try:
        parsed = ParsedResult(AgentRunResult.model_validate(fields))
    except ValidationError as error:
        parsed = _salvage(fields, error)
    sequence = parsed.result.sequence
    if sequence is not None and sequence < 1:
        warning = "sequence: numbers start at 1"
        return ParsedResult(parsed.result, (*parsed.warnings, warning))
    return parsed


def validate_payload(result: AgentRunResult) -> StrictModel | None:
    """Read the payload of a strict type; None for loose and unknown types, which take any (P-V2, P-V3).

    Raises:
        InvalidPayload: The payload does not fit the type (P-V1).
        MalformedResult: A `run.completed` has the key `message` but no message in it (P-V11).
    """
    model = STRICT_PAYLOADS.get(cast("ResultType", result.type))
    if model is None:
        return None
    if result.type == ResultType.RUN_COMPLETED and not result.data.get("message", True):
        raise _malformed("data.message: null or empty; leave the key out when there is no message")
    try:
        return model.model_validate(result.data)
    except ValidationError as error:
        raise InvalidPayload(describe_validation(error, below="data"), result) from None


def decode_content(payload: ArtifactCreatedData) -> bytes | None:
    """Return the bytes that came with an artifact, None when none came.

    Raises:
        MalformedResult: Not strict base64, or over 1 MiB decoded (P-V7).
    """
    text = payload.content_base64
    if text is None:
        return None
    if len(text) > (MAX_INLINE_ARTIFACT_BYTES + 2) // 3 * 4:
        raise _malformed(f"data.content_base64: exceeds {MAX_INLINE_ARTIFACT_BYTES} bytes decoded")
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("data.content_base64: no valid base64") from None
    if len(content) > MAX_INLINE_ARTIFACT_BYTES:
        raise _malformed(f"data.content_base64: exceeds {MAX_INLINE_ARTIFACT_BYTES} bytes decoded")
    return content


def _fields(value: object) -> dict[object, object]:
    if isinstance(value, AgentRunResult):
        return dict(cast("dict[object, object]", value.__dict__))
    if isinstance(value, dict):
        return dict(cast("dict[object, object]", value))
    raise _malformed(f"a runner yields AgentRunResult, not {printable(type(value).__name__)}")


def _salvage(fields: dict[object, object], error: ValidationError) -> ParsedResult:
    """Read an envelope that has faults, leaving out the optional parts that are at fault (P-S6).

    Unknown envelope fields are left out too: a newer SDK may send them (P-E2).
    """
    faults: dict[object, list[ErrorDetails]] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        faults.setdefault(fault["loc"][0] if fault["loc"] else "", []).append(fault)
    for name in ("type", "run_id"):
        if name in faults:
            raise _malformed(describe_faults(faults[name]))
    unknown = [name for name in fields if name not in AgentRunResult.model_fields]
    warnings = [describe_faults(faults[name]) for name in sorted(_OPTIONAL_FIELDS & faults.keys())]
    if unknown:
        warnings.append(_unknown_fields(unknown))
    left_out = {*unknown, *(_OPTIONAL_FIELDS & faults.keys()), *({"data"} & faults.keys())}
    result = AgentRunResult.model_validate({k: v for k, v in fields.items() if k not in left_out})
    if "data" in faults:
        raise InvalidPayload(describe_faults(faults["data"]), result)
    return ParsedResult(result, tuple(warnings))


def _unknown_fields(names: list[object]) -> str:
    shown = ", ".join(
        printable(name) if isinstance(name, str) else type(name).__name__ for name in names[:_MAX_SHOWN_NAMES]
    )
    more = len(names) - _MAX_SHOWN_NAMES
    return f"unknown fields ignored: {shown}" + (f" and {more} more" if more > 0 else "")


def _malformed(reason: str) -> MalformedResult:
    return MalformedResult(RunFailureCode.RUNNER_PROTOCOL, reason)
