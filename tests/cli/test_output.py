import json

import pytest

from runhost.cli import output
from runhost.cli.output import one_line, plain, write_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("line\n\ttab ✓ 你", "line\n\ttab ✓ 你"),
        ("\x1b[2Jgone", "�[2Jgone"),
        ("secret\roverwritten", "secret�overwritten"),
        ("dos\r\nunix", "dos\nunix"),
        ("\x9b2J \x07 \x7f", "�2J � �"),
        ("ab\u202edc", "ab�dc"),
        ("lone \ud800", "lone �"),
    ],
    ids=["text", "escape", "carriage return", "CRLF", "other controls", "direction", "surrogate"],
)
def test_plain_keeps_text_and_takes_what_a_terminal_obeys(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_one_line_is_short_and_says_so() -> None:
    assert one_line("a\n b") == "a b"
    assert one_line("x" * 100, 100) == "x" * 100
    assert one_line("x" * 101, 100) == "x" * 99 + "…"
    assert one_line(" " * 1_000_000 + "x", 100).endswith("…")


def test_json_is_one_line_that_reads_back(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    document = {"text": "✓\n\u2028 \ud800"}

    write_json(document)

    written = capsysbinary.readouterr().out
    assert written.count(b"\n") == 1
    assert "✓".encode() in written
    assert json.loads(written) == document


def test_texts_that_the_terminal_cannot_show_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))

    output.prepare_streams()
    sys.stdout.write("✓")

    assert raw.getvalue() == b"\\u2713"
