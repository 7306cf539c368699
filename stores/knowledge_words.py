"""The words by which passages are found, for passages and questions alike."""

import re
import unicodedata
from itertools import pairwise

# Written without spaces, or, as Korean is, with endings grown onto the words: Han with its extensions and
# iteration mark, Hiragana, Katakana, Hangul.
_UNSPACED = (
    "\u3005\u3041-\u3096\u30a1-\u30fe\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_RUN = re.compile(rf"[{_UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in lower case; full-width letters are as good as others.

    Where a script has no spaces, each pair of neighbouring characters is a word: every word of two characters
    or more is then found by its pairs, without a dictionary.
    """
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if is_unspaced(word) and len(word) > 1:
            found += [first + second for first, second in pairwise(word)]
        else:
            found.append(word)
    return found


def searchable_words(passage: str) -> list[str]:
    """Return the words to find a passage by: its words, and the last characters of runs without spaces.

    Every character then begins a word, so that a single one is found too, as the beginning of any.
    """
    runs = _RUN.findall(unicodedata.normalize("NFKC", passage).lower())
    return words_of(passage) + [run[-1] for run in runs if len(run) > 1]


def spaced_part(text: str) -> str | None:
    """Return what of a text is written with spaces, None where nothing is: what trigrams are made of."""
    rest = _RUN.sub(" ", text)
    return rest if _WORD.search(rest) else None


def has_unspaced(text: str) -> bool:
    """Say whether any of a text is of a script that is cut into pairs."""
    return _RUN.search(text) is not None


def is_unspaced(word: str) -> bool:
    """Say whether a word is of a script that is cut into pairs."""
    return _RUN.match(word) is not None
