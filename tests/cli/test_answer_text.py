from typing import Any

import pytest

from runhost.cli.answer_text import AnswerText
from runhost.protocol import AgentRunEvent
from tests.client.stub import event


def delta(content: Any, **chunk: Any) -> dict[str, Any]:
    return {"type_": "message.delta", "data": {"chunk": {"content": content, **chunk}}}


def message(content: Any, type_: str = "message.completed") -> dict[str, Any]:
    return {"type_": type_, "data": {"message": {"role": "assistant", "content": content}}}


ATTEMPT = {"type_": "host.attempt_started"}


def said(*rows: dict[str, Any]) -> str:
    answer = AnswerText()
    events = [AgentRunEvent.model_validate(event(number, **row)) for number, row in enumerate(rows, start=1)]
    return "".join([*map(answer.take, events), answer.finish()])


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], ""),
        ([delta("dur"), delta("able")], "durable\n"),
        ([delta("dur"), delta("able"), message("durable")], "durable\n"),
        ([delta("durable\n"), message("durable\n")], "durable\n"),
        ([delta("dur"), message("durable")], "durable\n"),
        ([delta("dur"), message("other")], "dur\nother\n"),
        ([message("one"), message("two")], "one\ntwo\n"),
        ([message("one"), message("one")], "one\none\n"),
        ([message("")], ""),
        ([message("one"), message("one", "run.completed")], "one\n"),
        ([message("one"), message("two", "run.completed")], "one\ntwo\n"),
        ([delta("one"), message("one", "run.completed")], "one\n"),
        ([message("one"), {"type_": "run.completed", "data": {"finish_reason": "stop"}}], "one\n"),
        ([delta("a"), delta("b", message_index=1), delta("c", message_index=1)], "a\nbc\n"),
        ([delta("du", mode="replace"), delta("dura", mode="replace"), message("durable")], "durable\n"),
        ([delta("dura", mode="replace"), delta("du", mode="replace"), delta("durable", mode="replace")], "durable\n"),
        ([delta("one", mode="replace"), delta("two", mode="replace")], "one\ntwo\n"),
        ([delta("one wo"), ATTEMPT, delta("one"), message("one word")], "one wo\none word\n"),
        ([delta("long text"), message("long")], "long text\n"),
        ([delta([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}])], "a[image_url]\n"),
        ([delta(None), delta(7), {"type_": "message.delta", "data": {"excerpt": "x"}}], ""),
    ],
)
def test_answer_is_written_once_as_it_comes(rows: list[dict[str, Any]], text: str) -> None:
    assert said(*rows) == text
