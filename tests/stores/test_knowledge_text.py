"""What is read out of uploaded documents, and the words in it."""

import pytest

from stores.knowledge_text import (
    MAX_DOCUMENT_BYTES,
    DocumentTooLarge,
    UnreadableText,
    UnsupportedType,
    read_text,
)
from stores.knowledge_words import searchable_words, spaced_part, words_of


def test_byte_order_mark_is_no_text() -> None:
    assert read_text("\ufeffhällo".encode(), "text/plain") == "hällo"


def test_html_is_read_as_it_is_shown() -> None:
    page = (
        "<html><head><title>T</title><style>p{}</style></head><body><h1>Refunds</h1>\n"
        "<p>Money &amp; goods go <b>ba</b>ck\nwithin a week.<script>alert('x')</script></p><ul><li>one<li>two</ul>"
    )
    assert read_text(page.encode(), "text/html") == "T\n\nRefunds\n\nMoney & goods go back within a week.\n\none\n\ntwo"


def test_html_that_is_broken_is_read_as_far_as_it_goes() -> None:
    assert read_text(b"<p>one</b></p><script>unread</p>", "text/html") == "one"
    assert read_text(b"a < b & c <", "text/html") == "a < b & c <"


@pytest.mark.parametrize(
    "unit", ["<a", "<!--", "<a x='", '<a x="', "</", "<![", "<?", "<b><i>", "<script>", "&", "&#", "<p title='>'>x"]
)
def test_html_made_to_take_long_does_not(unit: str) -> None:
    """A parser that looks again at what is left open would take hours, and the test its 60 seconds."""
    read_text(unit.encode() * (2 * 1024 * 1024 // len(unit)), "text/html")


def test_html_attributes_may_hold_what_looks_like_an_end() -> None:
    assert read_text(b"<p title=\"a > b\" x='>'>one</p><SCRIPT>x</script ><!-- <p>no</p> -->two", "text/html") == (
        "one\n\ntwo"
    )


def test_json_is_read_with_its_letters() -> None:
    assert '"退款": "七"' in read_text(b'{"\\u9000\\u6b3e": "\\u4e03"}', "application/json")


@pytest.mark.parametrize(
    ("content", "mime_type", "refusal", "told"),
    [
        (b"x", "application/pdf", UnsupportedType, "'application/pdf' is not accepted; send one of"),
        (b"x", "", UnsupportedType, "text/markdown"),
        (b"ab\xff", "text/plain", UnreadableText, "no UTF-8 at byte 2"),
        ("x".encode("utf-16"), "text/plain", UnreadableText, "no UTF-8 at byte 0"),
        (b"{", "application/json", UnreadableText, "no JSON: "),
        (b"[" * 100_000, "application/json", UnreadableText, "nesting"),
        (b"9" * 10_000, "application/json", UnreadableText, "number"),
        (b"&#" + b"9" * 10_000, "text/html", UnreadableText, "digits"),
        (b" " * (MAX_DOCUMENT_BYTES + 1), "text/plain", DocumentTooLarge, "split the document"),
    ],
)
def test_document_that_cannot_be_read_is_refused(
    content: bytes, mime_type: str, refusal: type[Exception], told: str
) -> None:
    with pytest.raises(refusal, match=told):
        read_text(content, mime_type)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Refunds take 7 days!", ["refunds", "take", "7", "days"]),
        ("退款需要", ["退款", "款需", "需要"]),
        ("返金はA4で", ["返金", "金は", "a4", "で"]),
        ("ＡＢＣ max_retries", ["abc", "max", "retries"]),
        ("a\x00b\ud800 -- '", ["a", "b"]),
        ("…", []),
    ],
)
def test_words_are_those_of_the_script(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_every_character_without_spaces_begins_a_word() -> None:
    assert searchable_words("退款 ok 海") == ["退款", "ok", "海", "款"]


def test_spaced_part_is_what_trigrams_are_good_for() -> None:
    assert spaced_part("错误 E-4711 出现。") == "  E-4711  。"
    assert spaced_part("退款。") is None
