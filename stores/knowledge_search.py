"""Finding the passages of a base that answer a question.

A question shares some words with its answer, never all of them. So a passage is found by any word, and ranked
by how rare the words are that it has (BM25): "refund" says more than "how". Three ways lead to a passage:

- its words, by full text: English endings are cut off, and scripts without spaces are in pairs of characters;
- the question as it stands, if it is short, by trigrams of what is written with spaces: codes and parts of
  words. Under three letters there is no trigram, and the passages of this base alone are read (D-47);
- where the base has no word of the question, a word like one of them, by trigrams: somebody has mistyped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from sqlalchemy import RowMapping, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Double, Integer, Text

from runhost.protocol import JsonObject
from stores.columns import ID, JSON, UUID, EscapedText
from stores.escaping import escape
from stores.jsonb import dumps
from stores.knowledge import KnowledgeBaseRow
from stores.knowledge_words import has_unspaced, is_unspaced, words_of

MAX_TOP_K: Final = 100
# A long question is an e-mail or a page; what it is about stands in its beginning.
MAX_WORDS: Final = 32
MAX_PHRASE_CHARACTERS: Final = 200
MAX_PART_WORDS: Final = 3
# A word that more passages have says nothing of any of them, and counting on would take as long as ranking.
COUNTED_PASSAGES: Final = 2_000
# So many passages are ranked at most of those that each way leads to.
RANKED_PASSAGES: Final = 1_000
# Likeness has to be looked for in each passage, in a third of a millisecond.
LIKENED_PASSAGES: Final = 2_000
MIN_MISTYPED_CHARACTERS: Final = 4
# What part of its trigrams a mistyped word shares with the word that was meant.
LIKENESS: Final = "0.5"
# As usual for BM25: a word that is said again counts for less.
_SATURATION = 1.2

_COUNT_WORDS = text("""
SELECT word, (
    SELECT count(*) FROM (
        SELECT FROM knowledge_passage
        WHERE base_key = :base_key AND words @@ CAST(quoted AS tsquery) AND (
            CAST(:filters AS jsonb) IS NULL OR file_key IN (
                SELECT file_key FROM knowledge_document
                WHERE workspace_id = :workspace_id AND kb_id = :kb_id AND metadata @> CAST(:filters AS jsonb)
            )
        )
        LIMIT :counted_passages
    ) counted
) AS passages, quoted
FROM (
    SELECT lexeme AS word, '''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || ''''
        || CASE WHEN lexeme = ANY(:beginnings) THEN ':*' ELSE '' END AS quoted
    FROM unnest(to_tsvector('english', :words))
    ORDER BY positions[1], lexeme
    LIMIT :max_words
) asked
""").bindparams(
    bindparam("filters", type_=Text), bindparam("words", type_=Text), bindparam("beginnings", type_=ARRAY(Text))
)
# With settings for what follows in the transaction. The planner does not know what it takes to unpack words, and
# would rather read all passages than their index; without the values of a question it guesses as badly.
_COUNT_PASSAGES = text("""
SELECT coalesce(sum(chunk_count), 0),
    set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('pg_trgm.word_similarity_threshold', :likeness, true)
FROM knowledge_document
WHERE workspace_id = :workspace_id AND kb_id = :kb_id
    AND (CAST(:filters AS jsonb) IS NULL OR metadata @> CAST(:filters AS jsonb))
""").bindparams(bindparam("filters", type_=Text))
_RANK = (
    # All operators here take NULL for "finds nothing", so a way that a question has no use for costs nothing.
    text("""
WITH word AS MATERIALIZED (
    SELECT CAST(quoted AS tsquery) AS query, weight FROM unnest(:quoted, :weights) AS known (quoted, weight)
),
chosen AS MATERIALIZED (
    SELECT file_key FROM knowledge_document
    WHERE workspace_id = :workspace_id AND kb_id = :kb_id AND metadata @> CAST(:filters AS jsonb)
),
-- Each way on its own, or the planner leaves the indexes for one look at everything.
candidate AS MATERIALIZED (
    (SELECT file_key, position FROM knowledge_passage
        WHERE base_key = :base_key AND words @@ CAST(:some_words AS tsquery)
        AND (CAST(:filters AS jsonb) IS NULL OR file_key IN (SELECT file_key FROM chosen)) LIMIT :ranked_passages)
    UNION ALL (SELECT file_key, position FROM knowledge_passage
        WHERE base_key = :base_key AND words @@ CAST(:all_words AS tsquery)
        AND (CAST(:filters AS jsonb) IS NULL OR file_key IN (SELECT file_key FROM chosen)) LIMIT :ranked_passages)
    UNION ALL (SELECT file_key, position FROM knowledge_passage
        WHERE base_key = :base_key AND spaced ILIKE :part ESCAPE '\\'
        AND (CAST(:filters AS jsonb) IS NULL OR file_key IN (SELECT file_key FROM chosen)) LIMIT :ranked_passages)
    UNION ALL (SELECT file_key, position FROM knowledge_passage
        WHERE base_key = :base_key AND :mistyped <% spaced
        AND (CAST(:filters AS jsonb) IS NULL OR file_key IN (SELECT file_key FROM chosen)) LIMIT :ranked_passages)
)
SELECT file_key, position, passage.content, document_id, name, metadata, (
    (
        SELECT coalesce(sum(weight * times * :saturated / (times + :saturation)), 0)
        -- The rank of a single word is a tenth for each time that it is said.
        FROM word, LATERAL (SELECT 10 * ts_rank_cd(unpacked.words, word.query) AS times) said
        WHERE unpacked.words @@ word.query
    )
    + CASE WHEN passage.content ILIKE :phrase ESCAPE '\\' THEN :rare ELSE 0 END
    + CASE WHEN :mistyped <% spaced THEN :rare * word_similarity(:mistyped, spaced) ELSE 0 END
) / :best AS score
FROM (SELECT DISTINCT file_key, position FROM candidate) found
    JOIN knowledge_passage passage USING (file_key, position)
    JOIN knowledge_document document USING (file_key),
    -- Once for a passage, where each use would unpack them anew.
    LATERAL (SELECT passage.words || CAST('' AS tsvector) AS words OFFSET 0) unpacked
WHERE workspace_id = :workspace_id AND kb_id = :kb_id
ORDER BY score DESC, file_key, position
LIMIT :top_k
""")
    .bindparams(
        bindparam("quoted", type_=ARRAY(Text)),
        bindparam("weights", type_=ARRAY(Double)),
        *(bindparam(name, type_=Double) for name in ("saturated", "saturation", "rare", "best")),
        *(bindparam(name, type_=Text) for name in ("some_words", "all_words", "phrase", "part", "mistyped", "filters")),
    )
    .columns(
        file_key=UUID,
        position=Integer,
        content=EscapedText,
        score=Double,
        document_id=ID,
        name=EscapedText,
        metadata=JSON,
    )
)


@dataclass(frozen=True)
class FoundPassage:
    """A passage that was found.

    Attributes:
        passage_id: Its document's file key and its position, from 0.
        score: From 0 to 1, the part of the question that it has.
        metadata: Of its document.
    """

    passage_id: str
    content: str
    score: float
    document_id: str
    document_name: str
    file_key: str
    position: int
    metadata: JsonObject


@dataclass(frozen=True)
class _Word:
    """A word of the question.

    Attributes:
        quoted: As a query of PostgreSQL has it.
        passages: How many have it, counted up to `COUNTED_PASSAGES`.
    """

    word: str
    quoted: str
    passages: int

    def weight(self, of_passages: int) -> float:
        """Return how much the word says, more the rarer it is."""
        return math.log1p(max(of_passages - self.passages + 0.5, 0.5) / (self.passages + 0.5))


class PassageSearch:
    """Searches the passages of one base, in a transaction that is for nothing else: it sets the planner."""

    def __init__(self, connection: AsyncConnection, workspace_id: str, base: KnowledgeBaseRow) -> None:
        self._connection = connection
        self._scope = {"workspace_id": workspace_id, "kb_id": base.kb_id, "base_key": base.base_key}

    async def retrieve(self, query: str, *, top_k: int, filters: JsonObject | None = None) -> list[FoundPassage]:
        """Return at most ``top_k`` passages, best first; equal ones in the order in which they were uploaded.

        Args:
            query: A question, or words, or a part of the text.
            top_k: At most `MAX_TOP_K`.
            filters: What the document's metadata must contain: equal values under the same keys.
        """
        scope = self._scope | {"filters": dumps(filters) if filters else None}
        total = int(await self._connection.scalar(_COUNT_PASSAGES, scope | {"likeness": LIKENESS}) or 0)
        if total == 0:
            return []
        question = _Question.of(query, await self._words(query, scope), total)
        rows = await self._connection.execute(_RANK, scope | question.values() | {"top_k": min(top_k, MAX_TOP_K)})
        return [_found(row) for row in rows.mappings()]

    async def _words(self, query: str, scope: dict[str, Any]) -> list[_Word]:
        # Some are the same word with other endings, and some are dropped as too common in English.
        written = words_of(query)[: MAX_WORDS * 4]
        values = {
            "words": " ".join(written),
            "beginnings": [word for word in written if len(word) == 1 and is_unspaced(word)],
            "counted_passages": COUNTED_PASSAGES,
            "max_words": MAX_WORDS,
        }
        rows = await self._connection.execute(_COUNT_WORDS, scope | values)
        return [_Word(row.word, row.quoted, row.passages) for row in rows]


@dataclass(frozen=True)
class _Question:
    """What is looked for.

    Attributes:
        phrase: The question as it stands, unless it is too long to stand anywhere.
        words: Its words.
        passages: How many the base has, of documents that the filters let pass.
    """

    phrase: str | None
    words: Sequence[_Word]
    passages: int

    @classmethod
    def of(cls, query: str, words: Sequence[_Word], passages: int) -> Self:
        """Read a question."""
        phrase = query.strip()
        return cls(phrase if 0 < len(phrase) <= MAX_PHRASE_CHARACTERS else None, words, passages)

    @property
    def known(self) -> list[_Word]:
        """The words that passages have, rarest first."""
        return sorted((word for word in self.words if word.passages), key=lambda word: word.passages)

    @property
    def mistyped(self) -> str | None:
        """The word to look for by what it is like, if that is all there is to look for."""
        if self.known or self.passages > LIKENED_PASSAGES:
            return None
        long = (word.word for word in self.words if len(word.word) >= MIN_MISTYPED_CHARACTERS)
        return next((word for word in long if not is_unspaced(word)), None)

    @property
    def is_part_of_words(self) -> bool:
        """Whether the phrase may stand where its words do not.

        Not where passages have all its words, nor where it has a word between others, which stands for itself.
        """
        if self.phrase is None or has_unspaced(self.phrase):
            return False
        known = self.known
        return not known or (len(known) < len(self.words) <= MAX_PART_WORDS)

    def values(self) -> dict[str, object]:
        """Return the values of `_RANK`."""
        known = self.known
        weights = [word.weight(self.passages) for word in known]
        # What a word says that one passage has.
        rare = _Word("", "", 1).weight(self.passages)
        phrase = None if self.phrase is None else f"%{_without_wildcards(escape(self.phrase))}%"
        mistyped = self.mistyped
        return {
            "quoted": [word.quoted for word in known],
            "weights": weights,
            "some_words": " | ".join(_selective(known)) or None,
            "all_words": " & ".join(word.quoted for word in known) or None,
            "phrase": phrase,
            "part": phrase if self.is_part_of_words else None,
            "mistyped": mistyped,
            "ranked_passages": RANKED_PASSAGES,
            "saturation": _SATURATION,
            "saturated": _SATURATION + 1,
            "rare": rare,
            "best": sum(weights) * (_SATURATION + 1) + rare * (1 if mistyped is None else 2),
        }


def _selective(words: Sequence[_Word]) -> list[str]:
    """Return the first of these words, rarest first, that lead to no more passages than are ranked."""
    chosen: list[str] = []
    found = 0
    for word in words:
        found += word.passages
        if chosen and found > RANKED_PASSAGES:
            break
        chosen.append(word.quoted)
    return chosen


def _without_wildcards(phrase: str) -> str:
    for special in "\\%_":
        phrase = phrase.replace(special, "\\" + special)
    return phrase


def _found(row: RowMapping) -> FoundPassage:
    return FoundPassage(
        passage_id=f"{row['file_key']}:{row['position']}",
        content=row["content"],
        score=row["score"],
        document_id=row["document_id"],
        document_name=row["name"],
        file_key=str(row["file_key"]),
        position=row["position"],
        metadata=row["metadata"],
    )
