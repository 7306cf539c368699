"""What a runner is put through: one scenario is one context, one host and one way to be stopped."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from runhost.protocol import ErrorCode

PLAIN_TEXT: Final = "Say in one sentence what this conformance run checks."

LONG_TEXT_BYTES: Final = 2_621_440
"""Text of the long input: more than one result may hold, so that repeating it whole in one is a fault (D-28)."""

LONG_ANSWER_BYTES: Final = 5 * 1024 * 1024
"""What models and tools answer where a scenario asks for long output; less than a call may answer (D-16)."""

BUSY_WORDS: Final = 1_900
"""Words of the input that keeps a runner busy which answers word by word; short enough to be a query (10,000
characters), and more results than any transport buffers."""

_LINE: Final = "line of long input".ljust(1_023) + "\n"


class ConfigChoice(StrEnum):
    """Which configuration a run gets."""

    GIVEN = "given"
    """The one under test: defaults of the form, and what was given to the kit."""
    EMPTY = "empty"
    """Nothing, although the form may ask for something."""
    OBJECTS = "objects"
    """An object for every item of the form."""
    NUMBERS = "numbers"
    """A negative number for every item of the form."""


class HostManner(StrEnum):
    """How the host, and the model endpoint beside it, meet a call."""

    ANSWERS = "answers"
    ANSWERS_AT_LENGTH = "answers_at_length"
    """Models and tools answer 5 MiB."""
    ANSWERS_WITHOUT_USAGE = "answers_without_usage"
    HANGS = "hangs"
    """No answer before the run's deadline, which refuses the call; without a deadline none at all."""
    REFUSES = "refuses"
    """Every call fails with the scenario's `refusal`."""


class StopPlan(StrEnum):
    """Whether the kit stops a runner that has not ended by itself."""

    NEVER = "never"
    ONCE_AT_WORK = "once_at_work"
    """Cancelled after its first result or call; its results are not read before, so that it cannot be done."""
    AT_DEADLINE = "at_deadline"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to run a runner.

    Attributes:
        name: Identifies it within the kit; also in the id of the event, for people who read a runner's log.
        text: Text of the input; None for none at all.
        event_type: Type of the event.
        config: Which configuration.
        host: How calls are met.
        refusal: What a refusing host answers.
        stop: When the kit stops the runner.
        deadline_seconds: Time that a runner has from its start to its deadline; None for no deadline.
        runs: Runs at the same time on one instance, each with a text of its own.
        is_newer: The context has fields that no version of the protocol knows yet.
    """

    name: str
    text: str | None = PLAIN_TEXT
    event_type: str = "message.received"
    config: ConfigChoice = ConfigChoice.GIVEN
    host: HostManner = HostManner.ANSWERS
    refusal: ErrorCode = ErrorCode.UNAUTHORIZED
    stop: StopPlan = StopPlan.NEVER
    deadline_seconds: float | None = None
    runs: int = 1
    is_newer: bool = False

    def marker(self, number: int) -> str:
        """Return a word that only the input of run `number` holds; empty for a run that is alone."""
        return f"marker{number}of{self.runs}" if self.runs > 1 else ""

    def text_of(self, number: int) -> str | None:
        """Return the input of run `number`."""
        return f"{self.marker(number)} {self.text}" if self.runs > 1 else self.text


def long_text() -> str:
    """Make a text over the limit of one result; of few wide lines, so that words are soon counted."""
    return _LINE * (LONG_TEXT_BYTES // len(_LINE))


PLAIN: Final = Scenario("plain")
LONG_INPUT: Final = Scenario("long_input", text=long_text())
LONG_ANSWER: Final = Scenario("long_answer", host=HostManner.ANSWERS_AT_LENGTH)
WITHOUT_USAGE: Final = Scenario("without_usage", host=HostManner.ANSWERS_WITHOUT_USAGE)
NEWER_CONTEXT: Final = Scenario("newer_context", is_newer=True)
UNKNOWN_EVENT: Final = Scenario("unknown_event", event_type="conformance.never_heard_of")
TOGETHER: Final = Scenario("together", runs=4)
CANCELLED: Final = Scenario(
    "cancelled", text=" ".join(["word"] * BUSY_WORDS), host=HostManner.HANGS, stop=StopPlan.ONCE_AT_WORK
)
DEADLINE: Final = Scenario("deadline", host=HostManner.HANGS, stop=StopPlan.AT_DEADLINE, deadline_seconds=1.0)

HOSTILE_TEXTS: Final = (
    Scenario("nul", text="before\x00after"),
    Scenario("surrogates", text="high \ud83d alone, low \udc00 alone"),
    Scenario("emoji", text="👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \U000e0067"),
    Scenario("directions", text="مرحبا \u202eolleh\u202c שלום\u2028\u2029\ufeff"),
)
WRONG_CONFIGS: Final = (
    Scenario("config_empty", config=ConfigChoice.EMPTY),
    Scenario("config_objects", config=ConfigChoice.OBJECTS),
    Scenario("config_numbers", config=ConfigChoice.NUMBERS),
)
SILENCES: Final = (
    Scenario("no_text", text=None),
    Scenario("empty_text", text=""),
    Scenario("blank_text", text=" \n\t"),
)
REFUSALS: Final = tuple(
    Scenario(f"refused_{code.value}", host=HostManner.REFUSES, refusal=code)
    for code in (ErrorCode.UNAUTHORIZED, ErrorCode.DEADLINE_EXCEEDED, ErrorCode.RATE_LIMITED, ErrorCode.RUNTIME_ERROR)
)
