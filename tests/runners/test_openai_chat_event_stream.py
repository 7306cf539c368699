"""The reader of event streams, wherever the network cuts them."""

import pytest

from runners.official.openai_chat.event_stream import MAX_EVENT_BYTES, EventStreamReader, EventTooLong

CASES = {
    "lf": (b"data: one\n\ndata: two\n\n", [b"one", b"two"]),
    "crlf": (b"data: one\r\n\r\ndata: two\r\n\r\n", [b"one", b"two"]),
    "cr": (b"data: one\r\rdata: two\r\r", [b"one", b"two"]),
    "mixed": (b"data: one\r\n\ndata: two\n\r\n", [b"one", b"two"]),
    "several-lines": (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
    "comments-and-fields": (b": ping\n\nevent: x\nid: 7\ndata: one\nretry: 5\n\n: ping\n\n", [b"one"]),
    "no-space": (b"data:one\n\ndata:  two\n\n", [b"one", b" two"]),
    "no-value": (b"data\n\ndata:\n\n", [b"", b""]),
    "other-names": (b"database: one\n\ndata : two\n\n", []),
    "byte-order-mark": (b"\xef\xbb\xbfdata: one\n\n", [b"one"]),
    "other-line-marks": ("data: a\u2028b\x0bc\x0cd\x85\n\n".encode(), ["a\u2028b\x0bc\x0cd\x85".encode()]),
    "cut-off-end": (b"data: one\n\ndata: [DONE]", [b"one", b"[DONE]"]),
    "cut-off-event": (b"data: one\n\ndata: two\n", [b"one", b"two"]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(("stream", "events"), CASES.values(), ids=CASES.keys())
def test_events_do_not_depend_on_where_pieces_end(stream: bytes, events: list[bytes], size: int) -> None:
    reader = EventStreamReader()
    read = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    assert read + reader.finish() == events


def test_events_come_out_as_soon_as_they_are_whole() -> None:
    reader = EventStreamReader()
    assert reader.feed(b"data: one\n") == []
    assert reader.feed(b"\n") == [b"one"]


def test_cr_ends_an_event_without_waiting_for_lf() -> None:
    reader = EventStreamReader()
    assert reader.feed(b"data: one\r\r") == [b"one"]
    assert reader.feed(b"\ndata: two\r\r") == [b"two"]


@pytest.mark.parametrize("line_end", [b"", b"\ndata: "], ids=["one-line", "many-lines"])
def test_event_over_the_limit_is_refused(line_end: bytes) -> None:
    reader = EventStreamReader()
    reader.feed(b"data: ")
    for _ in range(MAX_EVENT_BYTES // 1024 - 1):
        reader.feed(b"x" * 1024 + line_end)
    with pytest.raises(EventTooLong):
        reader.feed(b"x" * 2048 + line_end)


def test_long_line_in_small_pieces_takes_linear_time() -> None:
    reader = EventStreamReader()
    for _ in range(MAX_EVENT_BYTES // 16 - 1):
        reader.feed(b"x" * 16)
    assert reader.finish() == []
