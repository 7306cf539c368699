"""From ledger rows to the text that the run says, as it says it."""

from typing import cast

from runhost.protocol import AgentRunEvent, HostEventType, JsonObject, JsonValue, ResultType


class AnswerText:
    """Puts together what a run says; feed it the rows in order and write what it returns.

    Rows of unknown shape say nothing: what oversized results leave in the ledger, for instance (D-28). What
    stands cannot be taken back, so a text that turns out otherwise is written once more on a new line.
    """

    def __init__(self) -> None:
        self._message_index: JsonValue = None
        # Of the message that is being written.
        self._written = ""
        self._last_message = ""
        self._is_line_open = False

    def take(self, event: AgentRunEvent) -> str:
        """Return what this row adds, often nothing."""
        match event.type:
            case ResultType.MESSAGE_DELTA:
                said = self._delta(part_of(event.data, "chunk"))
            case ResultType.MESSAGE_COMPLETED:
                said = self._message(text_of(part_of(event.data, "message")))
            case ResultType.RUN_COMPLETED:
                said = self._last_words(text_of(part_of(event.data, "message")))
            case HostEventType.ATTEMPT_STARTED:
                # A lost attempt's message is begun again.
                said = self._new_line()
            case _:
                said = ""
        if said:
            self._is_line_open = not said.endswith("\n")
        return said

    def finish(self) -> str:
        """Return what ends the last line."""
        return self._new_line()

    def _delta(self, chunk: JsonObject) -> str:
        text, index = text_of(chunk), chunk.get("message_index", 0)
        lead = "" if index == self._message_index else self._new_line()
        self._message_index = index
        if chunk.get("mode") == "replace":
            return lead + self._rest_of(text)
        self._written += text
        return lead + text

    def _message(self, text: str) -> str:
        said = self._rest_of(text)
        self._last_message, self._written = text, ""
        is_open = not said.endswith("\n") if said else self._is_line_open
        self._is_line_open = False
        return said + ("\n" if is_open else "")

    def _last_words(self, text: str) -> str:
        """Take the message that came with the end; often it is the one that was just completed (D-25)."""
        return "" if not self._written and text == self._last_message else self._message(text)

    def _rest_of(self, text: str) -> str:
        """Return what of a text is not written yet."""
        written = self._written
        if written.startswith(text):
            return ""
        lead = "" if text.startswith(written) else self._new_line()
        said = text[len(self._written) :]
        self._written = text
        return lead + said

    def _new_line(self) -> str:
        """Begin anew, on a new line."""
        lead = "\n" if self._is_line_open else ""
        self._written, self._is_line_open = "", False
        return lead


def text_of(part: JsonObject) -> str:
    """Return the text of a message or chunk; what is no text shows as its kind, such as ``[image_url]``."""
    content = part.get("content")
    if isinstance(content, list):
        return "".join(_element(element) for element in content if isinstance(element, dict))
    return content if isinstance(content, str) else ""


def part_of(data: JsonObject, name: str) -> JsonObject:
    """Return an object inside a row's data; an empty one where there is none."""
    part = data.get(name)
    return cast("JsonObject", part) if isinstance(part, dict) else {}


def _element(element: JsonObject) -> str:
    text = element.get("text")
    return text if isinstance(text, str) else f"[{element.get('type')}]"
