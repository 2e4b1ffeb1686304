"""Scores how relevant document sentences are to the question, and how far the response used them.

The constants were chosen on RAGBench's development rows; see ``scoring``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from labeler.judges.embedded.index import DocumentIndex

# A document sentence: the share of it that is found in the response, plus how much of a response
# sentence it covers, plus CHOSEN if it is the closest to some response sentence. Then …
CHOSEN = 0.3
RELEVANCE_NEIGHBOURS = 0.3  # … the same of the sentences beside it,
UTILIZATION_NEIGHBOURS = 0.2
LENGTH = 0.4  # … its length, since short sentences overlap by chance,
LONG = 20  # … full at this many content words,
QUESTION = 0.5  # … for relevance, how much of the question it covers,
BACKGROUND = 0.5  # … less the record's mean, since a long response overlaps with everything.

DIGITS = 4


def overlap(index: DocumentIndex, sought: Sequence[set[str]]) -> list[float]:
    """For every document sentence, how much it shares with the sentences looked for."""
    covered = [index.coverage(words) for words in sought]
    chosen = {row.index(max(row)) for row in covered if any(row)}
    best = [max(column) for column in zip(*covered, strict=True)]
    return [
        share + most + CHOSEN * (place in chosen)
        for place, (share, most) in enumerate(zip(_shares(index, sought), best, strict=True))
    ]


def rank(
    index: DocumentIndex,
    overlaps: Sequence[float],
    neighbours: float,
    question: Iterable[float] = repeat(0.0),
) -> dict[str, float]:
    """The scores of all document sentences, by key."""
    background = BACKGROUND * sum(overlaps) / (len(overlaps) or 1)
    columns = zip(
        index.keys, overlaps, _beside(index, overlaps), index.contents, question, strict=False
    )
    return {
        key: round(
            own
            + neighbours * beside
            + LENGTH * min(len(content), LONG) / LONG
            + QUESTION * asked
            - background,
            DIGITS,
        )
        for key, own, beside, content, asked in columns
    }


def _shares(index: DocumentIndex, sought: Sequence[set[str]]) -> list[float]:
    """The weighted share of each document sentence that is looked for at all."""
    weights = index.weights
    wanted: set[str] = set().union(*sought)
    return [
        sum([weights[word] for word in content & wanted])
        / (sum([weights[word] for word in content]) or 1)
        for content in index.contents
    ]


def _beside(index: DocumentIndex, overlaps: Sequence[float]) -> list[float]:
    """The mean overlap of each sentence's two neighbours; 0 where its document ends."""
    means: list[float] = []
    start = 0
    for length in index.lengths:
        padded = [0.0, *overlaps[start : start + length], 0.0]
        means += [(padded[i] + padded[i + 2]) / 2 for i in range(length)]
        start += length
    return means
