"""Reads what a runner yielded, as the host reads it, and keeps what is wrong with it."""

import json
from dataclasses import dataclass
from typing import cast

from runhost.protocol import (
    AgentRunResult,
    ArtifactCreatedData,
    InvalidPayload,
    MalformedResult,
    Message,
    MessageCompletedData,
    MessageDeltaData,
    ResultType,
    RunCompletedData,
    StrictModel,
    decode_content,
    parse_result,
    validate_payload,
)

ENDS = frozenset({ResultType.RUN_COMPLETED, ResultType.RUN_FAILED})


@dataclass(frozen=True, slots=True)
class Reading:
    """One result as the host understands it.

    Attributes:
        result: The result, None where its envelope cannot be read.
        given_run_id: Run id as the runner wrote it; None where it left it out.
        warnings: What the host would warn of.
        payload: Payload of a strict type, None where there is none or it is wrong.
        envelope_fault: Why there is no result (P-V4).
        payload_fault: Why there is no payload (P-V1, P-V7, P-V11).
    """

    result: AgentRunResult | None
    given_run_id: object = None
    warnings: tuple[str, ...] = ()
    payload: StrictModel | None = None
    envelope_fault: str | None = None
    payload_fault: str | None = None

    @property
    def type(self) -> str:
        """Type of the result, empty where it cannot be read."""
        return "" if self.result is None else self.result.type

    @property
    def is_end(self) -> bool:
        """Whether it ends the run."""
        return self.type in ENDS

    @property
    def is_output(self) -> bool:
        """Whether it shows something: words, parts, an artifact, a state update or an action (D-24)."""
        if isinstance(self.payload, MessageDeltaData):
            chunk = self.payload.chunk
            return _shows(chunk.content) or bool(chunk.tool_calls or chunk.artifact_refs)
        if (message := self.message) is not None:
            return _shows(message.content) or bool(message.tool_calls or message.artifact_refs)
        return self.type in {ResultType.ARTIFACT_CREATED, ResultType.STATE_UPDATED, ResultType.ACTION_REQUESTED}

    @property
    def message(self) -> Message | None:
        """The whole message that it completes."""
        if isinstance(self.payload, MessageCompletedData | RunCompletedData):
            return self.payload.message
        return None

    @property
    def size_bytes(self) -> int:
        """Size of the payload as JSON."""
        return 0 if self.result is None else json_size(self.result.data)


def read_result(value: object, run_id: str) -> Reading:
    """Read one thing that a runner yielded, whatever it is."""
    given = _given_run_id(value)
    try:
        # By its own run id: one that is another run's is a fault of its own, not of the envelope.
        parsed = parse_result(value, run_id=given if isinstance(given, str) else run_id)
    except MalformedResult as error:
        return Reading(None, given, envelope_fault=error.reason)
    except InvalidPayload as error:
        return Reading(error.result, given, payload_fault=error.reason)
    try:
        payload = validate_payload(parsed.result)
        if isinstance(payload, ArtifactCreatedData):
            decode_content(payload)
    except (InvalidPayload, MalformedResult) as error:
        return Reading(parsed.result, given, parsed.warnings, payload_fault=error.reason)
    return Reading(parsed.result, given, parsed.warnings, payload)


def json_size(value: object) -> int:
    """Return the size of a JSON value in bytes of UTF-8, without blanks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _shows(content: object) -> bool:
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _given_run_id(value: object) -> object:
    if isinstance(value, AgentRunResult):
        return value.run_id
    return cast("dict[object, object]", value).get("run_id") if isinstance(value, dict) else None
