"""Cutting texts into passages."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stores.passages import PassageSizes, cut_passages, passage_spans

SMALL = PassageSizes(200, 50)
pieces = st.text(
    st.characters(exclude_categories=())
    | st.sampled_from(" \n.。！，、\r")
    | st.sampled_from("\u0301\u200d\U0001f469\U0001f3fd"),
    max_size=80,
)
texts = st.lists(pieces, max_size=30).map("".join)
sizes = st.integers(200, 400).flatmap(lambda most: st.builds(PassageSizes, st.just(most), st.integers(0, most // 4)))


@given(texts, sizes)
def test_passages_cover_the_text_in_order_within_the_limit(text: str, sizes: PassageSizes) -> None:
    spans = passage_spans(text, sizes)
    covered = 0
    for number, (start, end) in enumerate(spans):
        assert start <= covered < end
        assert end - start <= sizes.passage_characters
        assert number == 0 or start > spans[number - 1][0]
        covered = end
    assert covered == len(text)
    assert passage_spans(text, sizes) == spans
    assert all(0 < len(passage) <= sizes.passage_characters for passage in cut_passages(text, sizes))


@given(
    st.lists(
        st.sampled_from(["a", "e\u0301", "\U0001f469\u200d\U0001f4bb", "\U0001f44b\U0001f3fd", "字"]), min_size=150
    )
)
def test_what_people_see_as_one_character_is_not_cut(characters: list[str]) -> None:
    text = "".join(characters)
    places, place = {0}, 0
    for character in characters:
        place += len(character)
        places.add(place)
    assert {place for span in passage_spans(text, SMALL) for place in span} <= places


def test_passage_ends_with_a_paragraph_rather_than_a_sentence() -> None:
    text = "One. " * 30 + "Two.\n\n" + "Three. " * 30
    first, second, *_ = cut_passages(text, SMALL)
    assert first.endswith("Two.")
    assert second.startswith("One. One.")


@pytest.mark.parametrize(
    "sentence",
    ["退款将在七个工作日内到账。", "返金は七営業日以内に行われます。", "Money comes back within a week. "],
    ids=["zh", "ja", "en"],
)
def test_passages_begin_and_end_with_sentences(sentence: str) -> None:
    passages = cut_passages(sentence * 60, SMALL)
    assert len(passages) > 3
    assert all(passage.startswith(sentence[:4]) and passage.endswith(sentence.strip()[-3:]) for passage in passages)


def test_passages_overlap_by_about_what_was_asked() -> None:
    text = " ".join(f"word{number}" for number in range(400))
    spans = passage_spans(text, PassageSizes(400, 100))
    overlaps = [first[1] - second[0] for first, second in pairwise(spans)]
    assert all(80 <= overlap <= 100 for overlap in overlaps)
    without = passage_spans(text, PassageSizes(400, 0))
    assert all(first[1] == second[0] for first, second in pairwise(without))


def test_blank_text_has_no_passages() -> None:
    assert cut_passages(" \n\n\t" * 300, SMALL) == []
    assert cut_passages("", SMALL) == []


def test_text_without_any_place_to_cut_is_cut_all_the_same() -> None:
    assert [len(passage) for passage in cut_passages("x" * 1_000, PassageSizes(200, 0))] == [200] * 5
    # Nothing but marks: there is no whole character to cut between.
    assert unicodedata.category("\u0301") == "Mn"
    assert len(cut_passages("\u0301" * 1_000, PassageSizes(200, 0))) == 5


@pytest.mark.parametrize(("most", "overlap"), [(199, 0), (4_001, 0), (800, 201), (800, -1)])
def test_sizes_out_of_bounds_are_refused(most: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="characters"):
        PassageSizes(most, overlap)
