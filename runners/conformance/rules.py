"""What must hold for the results of every run, followed while they are read.

A rule is made anew for each run. It keeps the first fault only: the next ones mostly follow from it.
"""

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Final

from runhost.protocol import (
    EVENT_TYPE_PATTERN,
    MAX_RESULT_BYTES,
    MAX_STATE_VALUE_BYTES,
    MessageDeltaData,
    ResultType,
    StateUpdatedData,
    Usage,
)
from runners.conformance.reading import Reading, json_size
from runners.conformance.speech import text_of

# Of a streamed message that is compared with its completed form.
MAX_COMPARED_CHARACTERS: Final = 64 * 1024 * 1024
_KNOWN_TYPES: Final = frozenset(ResultType)
_TYPE_NAME: Final = re.compile(EVENT_TYPE_PATTERN)
_HOST_TYPES: Final = "host."
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


class Rule(ABC):
    """Follows the results of one run.

    Attributes:
        id: Id of the case that the rule belongs to.
        fault: What was wrong, None while nothing is.
        is_tried: Whether the run showed anything that the rule is about.
    """

    id: ClassVar[str]

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.fault: str | None = None
        self.is_tried = False

    @abstractmethod
    def see(self, reading: Reading) -> None:
        """Follow one result."""

    def fault_at_end(self) -> str | None:
        """Say what is missing when the results are over, unless the runner raised, or was stopped or cut off."""
        return None

    def found(self, fault: str) -> None:
        """Note a fault, if it is the first."""
        self.fault = self.fault or fault


class OrderRule(Rule):
    """Exactly one end; a tool call is completed after it was started (P-S1, PROTOCOL 7.2)."""

    id = "order"

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self._end: str | None = None
        self._started: set[object] = set()

    def see(self, reading: Reading) -> None:
        """Follow ends and tool calls."""
        self.is_tried = True
        if reading.result is None:
            return
        if reading.is_end:
            if self._end is not None:
                self.found(f"{reading.type} after {self._end}: a run ends once")
            self._end = reading.type
        call_id = reading.result.data.get("tool_call_id")
        if reading.type == ResultType.TOOL_CALL_STARTED:
            self._started.add(call_id)
        elif reading.type == ResultType.TOOL_CALL_COMPLETED and call_id not in self._started:
            self.found("tool.call.completed without a tool.call.started of the same tool_call_id before it")

    def fault_at_end(self) -> str | None:
        """Ask for an end."""
        return None if self._end else "the runner ended without run.completed or run.failed"


class LateRule(Rule):
    """Nothing after the end (D-22)."""

    id = "late_result"

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self._end: str | None = None

    def see(self, reading: Reading) -> None:
        """Follow what comes after an end, other ends aside."""
        if reading.is_end:
            self._end, self.is_tried = reading.type, True
        elif self._end is not None:
            what = reading.type or "something that is no result"
            self.found(f"{what} after {self._end}: the host reads nothing after the end, return there")


class DuplicateRule(Rule):
    """No number twice, none lower than one before it (P-S3, P-S4)."""

    id = "duplicate_sequence"

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self._highest: int | None = None

    def see(self, reading: Reading) -> None:
        """Follow the numbers."""
        number = None if reading.result is None else reading.result.sequence
        if number is None:
            return
        self.is_tried = True
        if self._highest is not None and number <= self._highest:
            self.found(f"sequence {number} after {self._highest}: numbers rise, the host drops repeated ones")
        self._highest = number if self._highest is None else max(number, self._highest)


class MissingRule(Rule):
    """Numbers from 1 without a gap; all results have one where the transport needs them (P-S3, P-S5, P-S6)."""

    id = "missing_sequence"

    def __init__(self, run_id: str, *, is_needed: bool) -> None:
        super().__init__(run_id)
        self._is_needed = is_needed
        self._highest = 0
        self._unnumbered = 0

    def see(self, reading: Reading) -> None:
        """Follow the numbers."""
        if any(warning.startswith("sequence") for warning in reading.warnings):
            self.is_tried = True
            self.found("sequence: must be a whole number from 1")
        if reading.result is None:
            return
        number = reading.result.sequence
        if number is None:
            self._unnumbered += 1
            self.is_tried = self.is_tried or self._is_needed
            if self._is_needed:
                self.found(f"{reading.type} has no sequence: results that cross a process are numbered from 1")
        else:
            self.is_tried = True
            if number > self._highest + 1:
                self.found(f"sequence {number} where {self._highest + 1} was expected: numbers have no gaps")
            self._highest = max(self._highest, number)
        if self._highest and self._unnumbered:
            self.found("some results have a sequence and some have none: number all of them, or none")


class RunIdRule(Rule):
    """Results belong to the run that they were yielded in (P-V5, P-D8)."""

    id = "run_id"

    def see(self, reading: Reading) -> None:
        """Compare the run id."""
        self.is_tried = True
        if reading.result is not None and reading.given_run_id != self.run_id:
            what = "no run_id" if reading.given_run_id is None else "the run_id of another run"
            self.found(f"{reading.type} has {what}: take it from ctx.run_id")


class EnvelopeRule(Rule):
    """A result is an object with known fields of the right types (P-V4, P-V9)."""

    id = "envelope"

    def see(self, reading: Reading) -> None:
        """Look for what the host could not read, or would warn of."""
        self.is_tried = True
        if reading.envelope_fault is not None:
            self.found(reading.envelope_fault)
        for warning in reading.warnings:
            # Numbers and usage have cases of their own.
            if not warning.startswith(("sequence", "usage")):
                self.found(warning)


class PayloadRule(Rule):
    """Payloads of the strict types are valid; everything is JSON (P-V1, P-V7, P-V11)."""

    id = "payload"

    def see(self, reading: Reading) -> None:
        """Look for what the host would reject."""
        self.is_tried = True
        if reading.payload_fault is not None:
            self.found(f"{reading.type}: {reading.payload_fault}")


class TypeRule(Rule):
    """Types are known, or at least well-formed names (P-V3)."""

    id = "unknown_type"

    def see(self, reading: Reading) -> None:
        """Look at the type."""
        if reading.result is None:
            return
        self.is_tried = True
        if reading.type.startswith(_HOST_TYPES):
            self.found(f"type {reading.type!r:.120}: names that begin with 'host.' are the host's own")
        elif reading.type not in _KNOWN_TYPES and not _TYPE_NAME.fullmatch(reading.type):
            self.found(
                f"type {reading.type!r:.120} is none of the protocol and not formed like one; a type of your own "
                "reads like 'acme.progress'"
            )


class SizeRule(Rule):
    """No result over 2 MiB, no state value over 256 KiB (D-28, P-V6); artifacts are payloads (P-V7)."""

    id = "long_output"

    def see(self, reading: Reading) -> None:
        """Measure."""
        if reading.result is None:
            return
        self.is_tried = True
        if (size := reading.size_bytes) > MAX_RESULT_BYTES:
            self.found(
                f"{reading.type} of {size} bytes: the host takes {MAX_RESULT_BYTES}; stream it in pieces, or make "
                "an artifact of it"
            )
        if isinstance(reading.payload, StateUpdatedData):
            size = json_size(reading.payload.value)
            if size > MAX_STATE_VALUE_BYTES:
                self.found(f"a state value of {size} bytes: the host keeps {MAX_STATE_VALUE_BYTES}; use storage")


class UsageRule(Rule):
    """Usage is valid, and not zeros where it is unknown (D-32)."""

    id = "usage"

    def see(self, reading: Reading) -> None:
        """Look at the usage."""
        for warning in reading.warnings:
            if warning.startswith("usage"):
                self.is_tried = True
                self.found(warning)
        usage = None if reading.result is None else reading.result.usage
        if usage is None:
            return
        self.is_tried = True
        if _is_zeros(usage):
            self.found(f"{reading.type} reports usage of 0 tokens: leave out what is not known, never send 0 for it")


class StreamingRule(Rule):
    """Deltas are increments, or say that they are not (D-26, LA-03)."""

    id = "streaming"

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self._pieces: list[str] = []
        self._characters = 0
        self._message_index: int | None = None

    def see(self, reading: Reading) -> None:
        """Compare a message with the deltas before it."""
        if isinstance(reading.payload, MessageDeltaData):
            self._add(reading.payload)
        elif (message := reading.message) is not None:
            text = text_of(message.content)
            # Snapshots that pile up as if each were a new piece: readers would see the beginning again and again.
            if len(self._pieces) > 1 and self._pieces[-1] == text != "".join(self._pieces):
                self.found(
                    "the last message.delta holds the whole message, and so repeats the ones before it: "
                    "send increments, or chunk.mode 'replace'"
                )
            self._pieces = []

    def _add(self, payload: MessageDeltaData) -> None:
        self.is_tried = True
        chunk = payload.chunk
        if chunk.message_index != self._message_index or chunk.mode == "replace":
            self._pieces, self._characters, self._message_index = [], 0, chunk.message_index
        text = text_of(chunk.content)
        self._characters += len(text)
        if text and self._characters <= MAX_COMPARED_CHARACTERS:
            self._pieces.append(text)


def rules_for(run_id: str, *, crosses_process: bool) -> list[Rule]:
    """Make the rules for a run."""
    return [
        OrderRule(run_id),
        LateRule(run_id),
        DuplicateRule(run_id),
        MissingRule(run_id, is_needed=crosses_process),
        RunIdRule(run_id),
        EnvelopeRule(run_id),
        PayloadRule(run_id),
        TypeRule(run_id),
        SizeRule(run_id),
        UsageRule(run_id),
        StreamingRule(run_id),
    ]


def _is_zeros(usage: Usage) -> bool:
    """Say whether a count claims what cannot be: a model that read nothing, or did nothing at all."""
    known = [count for name in _COUNTS if (count := getattr(usage, name)) is not None]
    return usage.prompt_tokens == 0 or (bool(known) and not any(known))
