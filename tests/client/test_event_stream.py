import random
from itertools import pairwise

import pytest

from runhost.client import EventStreamParser, EventTooLong, StreamEvent
from runhost.client import event_stream as event_stream_module

STREAM = (
    b"\xef\xbb\xbfretry: 2000\n\n"
    b": ping\n\n"
    b'id: 1\nevent: host.attempt_started\ndata: {"a":1}\n\n'
    b"id: 2\r\nevent: message.delta\r\ndata: durable \xe2\x9c\x93 \xf0\x9f\x9a\x80 \xe4\xbd\xa0\r\n\r\n"
    b"id: 3\rdata: one\rdata: two\r\r"
    b"data:no space\nunknown: field\ndata\n\n"
)
EVENTS = [
    StreamEvent("1", "host.attempt_started", '{"a":1}'),
    StreamEvent("2", "message.delta", "durable ✓ 🚀 你"),
    StreamEvent("3", "message", "one\ntwo"),
    StreamEvent("3", "message", "no space\n"),
]


def parse(*pieces: bytes) -> list[StreamEvent]:
    parser = EventStreamParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def test_whole_stream_is_split_into_events() -> None:
    assert parse(STREAM) == EVENTS


def test_stream_cut_at_every_byte_gives_the_same_events() -> None:
    assert parse(*(STREAM[place : place + 1] for place in range(len(STREAM)))) == EVENTS


def test_stream_cut_anywhere_gives_the_same_events() -> None:
    for seed in range(500):
        source = random.Random(seed)
        places = sorted(source.choices(range(len(STREAM) + 1), k=source.randint(1, 12)))
        cuts = [0, *places, len(STREAM)]
        assert parse(*(STREAM[start:end] for start, end in pairwise(cuts))) == EVENTS, f"seed {seed}"


def test_unfinished_event_does_not_count() -> None:
    assert parse(b"data: whole\n\ndata: cut\n") == [StreamEvent("", "message", "whole")]


@pytest.mark.parametrize(
    ("stream", "event"),
    [
        (b"event: a\n\ndata: x\n\n", StreamEvent("", "message", "x")),
        (b"id: 7\n\ndata: x\n\n", StreamEvent("7", "message", "x")),
        (b"id: 7\nid: 8\0\ndata: x\n\n", StreamEvent("7", "message", "x")),
        (b"id: 7\nid\ndata: x\n\n", StreamEvent("", "message", "x")),
        (b"data:  two spaces\n\n", StreamEvent("", "message", " two spaces")),
        (b"data: a: b\n\n", StreamEvent("", "message", "a: b")),
        (b"data: \xff\n\n", StreamEvent("", "message", "�")),
    ],
    ids=["type without data", "id without data", "id with NUL", "id reset", "spaces", "colon", "no UTF-8"],
)
def test_odd_fields_follow_the_standard(stream: bytes, event: StreamEvent) -> None:
    assert parse(stream) == [event]


@pytest.mark.parametrize(("text", "seconds"), [(b"2000", 2.0), (b"0", 0.0), (b"-1", None), (b"soon", None)])
def test_retry_is_read_as_milliseconds(text: bytes, seconds: float | None) -> None:
    parser = EventStreamParser()
    parser.feed(b"retry: " + text + b"\n\n")

    assert parser.retry_seconds == seconds


@pytest.mark.parametrize("filler", [b"x", b"x\ndata: "], ids=["one line", "many lines"])
def test_event_without_end_is_refused(filler: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream_module, "MAX_EVENT_BYTES", 1_000)

    with pytest.raises(EventTooLong):
        parse(b"data: ", *[filler] * 1_001)
