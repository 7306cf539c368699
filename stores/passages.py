"""Cutting a text into passages that overlap: at paragraphs, else sentences, else words, else anywhere.

Sentences end as they do in Chinese and Japanese too, which have no spaces to cut at.
"""

import re
import unicodedata
from dataclasses import dataclass

DEFAULT_PASSAGE_CHARACTERS = 800
MIN_PASSAGE_CHARACTERS = 200
MAX_PASSAGE_CHARACTERS = 4_000
DEFAULT_OVERLAP_CHARACTERS = 100
# An overlap of a larger part would store a text many times.
MAX_OVERLAP_PART = 4

_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
_SENTENCE = re.compile(r"""[.!?]["')\]]*\s+|[。！？｡][」』）】”’]*\s*|\n\s*""")
_WORD = re.compile(r"\s+|[，、；：,;]")
_LEVELS = (_PARAGRAPH, _SENTENCE, _WORD)
_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class PassageSizes:
    """How a text is cut.

    Attributes:
        passage_characters: Most that a passage holds, 200 to 4,000.
        overlap_characters: About how much of its end the next passage repeats, at most a quarter of a passage.

    Raises:
        ValueError: A size is out of bounds.
    """

    passage_characters: int = DEFAULT_PASSAGE_CHARACTERS
    overlap_characters: int = DEFAULT_OVERLAP_CHARACTERS

    def __post_init__(self) -> None:
        if not MIN_PASSAGE_CHARACTERS <= self.passage_characters <= MAX_PASSAGE_CHARACTERS:
            raise ValueError(
                f"passage_characters: {self.passage_characters} is not within "
                f"{MIN_PASSAGE_CHARACTERS} to {MAX_PASSAGE_CHARACTERS}"
            )
        largest = self.passage_characters // MAX_OVERLAP_PART
        if not 0 <= self.overlap_characters <= largest:
            raise ValueError(
                f"overlap_characters: {self.overlap_characters} is not within 0 to {largest}, "
                f"a quarter of passage_characters"
            )


def cut_passages(text: str, sizes: PassageSizes) -> list[str]:
    """Return the passages of a text in order, without the white space around them; blank ones are left out."""
    cut = (text[start:end].strip() for start, end in passage_spans(text, sizes))
    return [passage for passage in cut if passage]


def passage_spans(text: str, sizes: PassageSizes) -> list[tuple[int, int]]:
    """Return where the passages start and end. Together they cover the text, and the same text is cut alike."""
    spans: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > sizes.passage_characters:
        end = _end(text, start, sizes.passage_characters)
        spans.append((start, end))
        # At most a quarter of what was cut, which is at least half a passage: this always moves on.
        start = _overlap_start(text, end, sizes.overlap_characters)
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _end(text: str, start: int, size: int) -> int:
    """Return the best place to end a passage, in its second half."""
    earliest, latest = start + size // 2 + 1, start + size
    for level in _LEVELS:
        places = [match.end() for match in level.finditer(text, earliest, latest)]
        if places:
            return places[-1]
    return _between_characters(text, latest, earliest)


def _overlap_start(text: str, end: int, overlap: int) -> int:
    """Return where the passage after ``end`` starts: with a sentence or at least a word, if there is one."""
    earliest = end - overlap
    for level in (_SENTENCE, _WORD):
        for match in level.finditer(text, earliest, end):
            if match.end() < end:
                return match.end()
    return _between_characters(text, earliest, earliest - overlap)


def _between_characters(text: str, place: int, earliest: int) -> int:
    """Move a cut back from within what people see as one character, but not beyond ``earliest``."""
    for found in range(place, earliest, -1):
        if not _is_joined(text, found):
            return found
    return place


def _is_joined(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    # Marks go with the letter before them; so do joiners and what they join, and skin tones.
    return (
        unicodedata.category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or (before == "\r" and after == "\n")
    )
