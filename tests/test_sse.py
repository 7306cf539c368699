"""The reader of event streams, wherever the network cuts them."""

import random
from itertools import pairwise

import pytest

from runhost.sse import EventStreamParser, EventTooLong

Event = tuple[str, str, str]

STREAM = (
    b"\xef\xbb\xbfretry: 2000\n\n"
    b": ping\n\n"
    b'id: 1\nevent: host.attempt_started\ndata: {"a":1}\n\n'
    b"id: 2\r\nevent: message.delta\r\ndata: durable \xe2\x9c\x93 \xf0\x9f\x9a\x80 \xe4\xbd\xa0\r\n\r\n"
    b"id: 3\rdata: one\rdata: two\r\r"
    b"data:no space\nunknown: field\ndata\n\n"
)
EVENTS: list[Event] = [
    ("1", "host.attempt_started", '{"a":1}'),
    ("2", "message.delta", "durable ✓ 🚀 你"),
    ("3", "message", "one\ntwo"),
    ("3", "message", "no space\n"),
]
DATA = {
    "lf": (b"data: one\n\ndata: two\n\n", ["one", "two"]),
    "crlf": (b"data: one\r\n\r\ndata: two\r\n\r\n", ["one", "two"]),
    "cr": (b"data: one\r\rdata: two\r\r", ["one", "two"]),
    "mixed": (b"data: one\r\n\ndata: two\n\r\n", ["one", "two"]),
    "several-lines": (b"data: one\ndata: two\n\n", ["one\ntwo"]),
    "comments-and-fields": (b": ping\n\nevent: x\nid: 7\ndata: one\nretry: 5\n\n: ping\n\n", ["one"]),
    "no-space": (b"data:one\n\ndata:  two\n\n", ["one", " two"]),
    "no-value": (b"data\n\ndata:\n\n", ["", ""]),
    "other-names": (b"database: one\n\ndata : two\n\n", []),
    "byte-order-mark": (b"\xef\xbb\xbfdata: one\n\n", ["one"]),
    "other-line-marks": ("data: a\u2028b\x0bc\x0cd\x85\n\n".encode(), ["a\u2028b\x0bc\x0cd\x85"]),
    "nothing": (b"", []),
}


def parse(*pieces: bytes, max_event_bytes: int = 10_000) -> list[Event]:
    parser = EventStreamParser(max_event_bytes=max_event_bytes)
    return [(event.id, event.event, event.data) for piece in pieces for event in parser.feed(piece)]


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


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(("stream", "data"), DATA.values(), ids=DATA.keys())
def test_data_does_not_depend_on_where_pieces_end(stream: bytes, data: list[str], size: int) -> None:
    events = parse(*(stream[at : at + size] for at in range(0, len(stream), size)))
    assert [text for _, _, text in events] == data


def test_events_come_out_as_soon_as_they_are_whole() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"data: one\n") == []
    assert [event.data for event in parser.feed(b"\n")] == ["one"]


def test_cr_ends_an_event_without_waiting_for_lf() -> None:
    parser = EventStreamParser()
    assert [event.data for event in parser.feed(b"data: one\r\r")] == ["one"]
    assert [event.data for event in parser.feed(b"\ndata: two\r\r")] == ["two"]


def test_unfinished_event_does_not_count() -> None:
    assert parse(b"data: whole\n\ndata: cut\n") == [("", "message", "whole")]


@pytest.mark.parametrize("end", [b"data: [DONE]", b"data: [DONE]\n", b"data: [DONE]\r\n"])
def test_unfinished_event_counts_for_who_asks(end: bytes) -> None:
    parser = EventStreamParser()
    whole = parser.feed(b"data: one\n\n" + end)
    assert [event.data for event in [*whole, *parser.finish()]] == ["one", "[DONE]"]
    assert parser.finish() == []


@pytest.mark.parametrize(
    ("stream", "event"),
    [
        (b"event: a\n\ndata: x\n\n", ("", "message", "x")),
        (b"id: 7\n\ndata: x\n\n", ("7", "message", "x")),
        (b"id: 7\nid: 8\0\ndata: x\n\n", ("7", "message", "x")),
        (b"id: 7\nid\ndata: x\n\n", ("", "message", "x")),
        (b"data:  two spaces\n\n", ("", "message", " two spaces")),
        (b"data: a: b\n\n", ("", "message", "a: b")),
        (b"data: \xff\n\n", ("", "message", "�")),
    ],
    ids=["type without data", "id without data", "id with NUL", "id reset", "spaces", "colon", "no UTF-8"],
)
def test_odd_fields_follow_the_standard(stream: bytes, event: Event) -> None:
    assert parse(stream) == [event]


def test_bytes_are_kept_as_they_came() -> None:
    [event] = EventStreamParser().feed(b"data: \xff\ndata:\n\n")
    assert event.raw == b"\xff\n"


@pytest.mark.parametrize(
    ("text", "seconds"), [(b"2000", 2.0), (b"0", 0.0), (b"-1", None), (b"soon", None), (b"9" * 5_000, None)]
)
def test_retry_is_read_as_milliseconds(text: bytes, seconds: float | None) -> None:
    parser = EventStreamParser()
    parser.feed(b"retry: " + text + b"\n\n")

    assert parser.retry_seconds == seconds


@pytest.mark.parametrize("filler", [b"x", b"x\ndata: "], ids=["one line", "many lines"])
def test_event_without_end_is_refused(filler: bytes) -> None:
    with pytest.raises(EventTooLong, match="1000 bytes"):
        parse(b"data: ", *[filler] * 1_001, max_event_bytes=1_000)


def test_long_line_in_small_pieces_takes_linear_time() -> None:
    parser = EventStreamParser(max_event_bytes=1024 * 1024)
    for _ in range(1024 * 1024 // 16 - 1):
        parser.feed(b"x" * 16)
    assert parser.finish() == []
