"""Lines on a pipe: cut right wherever the pieces end, and never longer than the limit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runhost.sdk.wire import LineSplitter, LineTooLong, encode_line


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and not line.isspace())), st.data())
def test_lines_are_the_same_wherever_the_pieces_end(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter()
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line for piece in pieces for line in splitter.feed(piece)] == lines
    assert splitter.rest() == b""


def test_line_without_its_end_is_the_rest() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.rest() == b"tw"


@pytest.mark.parametrize("pieces", [[b"x" * 10], [b"x" * 5, b"x" * 5], [b"ok\n" + b"x" * 10 + b"\n"]], ids=str)
def test_line_with_its_end_fits_the_limit(pieces: list[bytes]) -> None:
    assert LineSplitter(limit=10).feed(b"x" * 9 + b"\n") == [b"x" * 9]
    splitter = LineSplitter(limit=10)
    for piece in pieces[:-1]:
        splitter.feed(piece)
    with pytest.raises(LineTooLong, match="longer than 10 bytes"):
        splitter.feed(pieces[-1])


def test_message_is_one_line_of_ascii() -> None:
    """D-31: lone surrogates pass, and what some take for the end of a line is escaped."""
    message = {"text": "grüße\n\u2028\ud800"}
    line = encode_line(message)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line) == message
