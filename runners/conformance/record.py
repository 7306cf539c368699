"""What was seen of one run."""

from typing import Final

from runhost.protocol import AgentRunContext, MessageDeltaData, RunFailedData
from runners.conformance.host import RecordingHost
from runners.conformance.reading import Reading, read_result
from runners.conformance.rules import Rule
from runners.conformance.scenario import Scenario
from runners.conformance.speech import text_of
from runners.errors import RunnerError
from runners.transport import Residual

MAX_KEPT_CHARACTERS: Final = 100_000


class RunRecord:
    """One run of a scenario: what its results were, how it ended, what it called, what it left.

    Args:
        scenario: What the run is put through.
        number: Which of the scenario's runs.
        context: What it was given.
        rules: What to follow its results with.
        host: The host that it can call.

    Attributes:
        results: How many there were.
        has_output: Whether any of them showed something (D-24).
        end: The first `run.completed` or `run.failed`.
        crash: What the runner raised, or that it blocked.
        is_cut_off: It did not end in the time that there was, or called too often.
        was_at_work: It had not ended when it was told to stop.
        stop_seconds: How long it took to end then; None if it was not told to.
        was_forced: It did not end by itself then.
        residual: What was left of it in the end.
        endpoint_calls: Requests to the kit's model endpoint.
        text: The beginning of all that it said.
    """

    def __init__(
        self, scenario: Scenario, number: int, context: AgentRunContext, rules: list[Rule], host: RecordingHost
    ) -> None:
        self.scenario = scenario
        self.number = number
        self.context = context
        self.rules = {rule.id: rule for rule in rules}
        self.host = host
        self.results = 0
        self.has_output = False
        self.end: Reading | None = None
        self.crash: RunnerError | None = None
        self.is_cut_off = False
        self.was_at_work = False
        self.stop_seconds: float | None = None
        self.was_forced = False
        self.residual: Residual | None = None
        self.endpoint_calls = 0
        self.text = ""

    @property
    def failure(self) -> RunFailedData | None:
        """How the runner said that it failed."""
        payload = None if self.end is None else self.end.payload
        return payload if isinstance(payload, RunFailedData) else None

    @property
    def calls(self) -> int:
        """Calls of the host and of the model endpoint."""
        return self.endpoint_calls + self.host.calls

    @property
    def uncontrolled_end(self) -> str | None:
        """How the run ended if it did not end by itself, well or not; None if it did."""
        if self.crash is not None:
            return f"the runner broke: {self.crash}"
        if self.is_cut_off:
            return f"it did not end, and was cut off after {self.results} results and {self.calls} calls"
        return None

    def take(self, value: object) -> None:
        """Take one result, whatever it is."""
        reading = read_result(value, self.context.run_id)
        self.results += 1
        for rule in self.rules.values():
            rule.see(reading)
        if self.end is None:
            self.has_output = self.has_output or reading.is_output
            if reading.is_end:
                self.end = reading
        self._keep_text(reading)

    def close(self) -> None:
        """Take the end of the results."""
        if self.crash is not None or self.stop_seconds is not None or self.is_cut_off:
            return
        for rule in self.rules.values():
            if (fault := rule.fault_at_end()) is not None:
                rule.found(fault)

    def _keep_text(self, reading: Reading) -> None:
        room = MAX_KEPT_CHARACTERS - len(self.text)
        if room <= 0:
            return
        if isinstance(reading.payload, MessageDeltaData):
            self.text += text_of(reading.payload.chunk.content)[:room]
        elif reading.message is not None:
            self.text += text_of(reading.message.content)[:room]
