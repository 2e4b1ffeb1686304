"""Lexical scores for every sentence of a record: support, relevance, utilization.

Origin of the constants here and in ``support``: the form of the rule was known to do well on
RAGBench. The weights were chosen by rank on the 2,032 development rows (``dataset_name`` ending in
``_train`` or ``_validation``) of RAGBench's covidqa, delucionqa, emanual and msmarco subsets, and
rounded. The 985 rows ending in ``_test`` were evaluated once afterwards, and nothing was changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from labeler.judges.embedded.index import DocumentIndex
from labeler.judges.embedded.support import DIGITS, EMPTY, Evidence, weigh
from labeler.sentences.example import KeyedExample
from labeler.sentences.statements import read_claim
from labeler.sentences.words import EMPTY_TALK, STOP_WORDS, stems, surface_words, written

# Score of a document sentence: its share that occurs in the response, plus its highest coverage of
# a response sentence, plus CHOSEN if it is the closest to some response sentence. Then …
CHOSEN = 0.3
RELEVANCE_NEIGHBORS = 0.3  # … the same for its neighbors,
UTILIZATION_NEIGHBORS = 0.2
LENGTH = 0.4  # … its length, since short sentences overlap by chance,
LONG = 20  # … full at this many content words,
QUESTION = 0.5  # … for relevance, its coverage of the question,
BACKGROUND = 0.5  # … minus the record's mean, since a long response overlaps with everything.


class Scores(NamedTuple):
    """All scores of a record.

    Attributes:
        evidence: by key of the response sentence, in reading order.
        relevance: by key of the document sentence, in reading order.
        utilization: by key of the document sentence, in reading order.
        unseen_question: words of the question that no document contains, as written.
        adherence: probability that every response sentence is supported; ``None`` if the scores are
            no probabilities.
    """

    evidence: dict[str, Evidence]
    relevance: dict[str, float]
    utilization: dict[str, float]
    unseen_question: tuple[str, ...]
    adherence: float | None = None


def score(example: KeyedExample) -> Scores:
    """Score every sentence of a record."""
    claims = [read_claim(sentence) for sentence in example.response]
    asked = surface_words(example.question)
    asked_stems = stems(asked)
    question = set(asked_stems) - STOP_WORDS
    empty = all(claim.words <= EMPTY_TALK for claim in claims)
    # A response without claims cannot show what is relevant: the question stands in for it.
    targets = [question] if empty else [claim.content for claim in claims]
    index = DocumentIndex(example, question.union(*targets))
    overlaps = _overlaps(index, targets)
    return Scores(
        evidence={claim.key: EMPTY if empty else weigh(claim, index) for claim in claims},
        relevance=_ranks(index, overlaps, RELEVANCE_NEIGHBORS, index.coverage(question)),
        utilization=(
            dict.fromkeys(index.keys, 0.0)
            if empty
            else _ranks(index, overlaps, UTILIZATION_NEIGHBORS)
        ),
        unseen_question=written(asked, asked_stems, question - index.weights.keys()),
    )


def _overlaps(index: DocumentIndex, targets: Sequence[set[str]]) -> list[float]:
    """Return the overlap of each document sentence with the target sentences."""
    covered = [index.coverage(words) for words in targets]
    chosen = {row.index(max(row)) for row in covered if any(row)}
    best = [max(column) for column in zip(*covered, strict=True)]
    return [
        share + most + CHOSEN * (place in chosen)
        for place, (share, most) in enumerate(zip(_shares(index, targets), best, strict=True))
    ]


def _ranks(
    index: DocumentIndex,
    overlaps: Sequence[float],
    neighbors: float,
    question: Iterable[float] = repeat(0.0),
) -> dict[str, float]:
    """Return the scores of all document sentences by key."""
    background = BACKGROUND * sum(overlaps) / (len(overlaps) or 1)
    columns = zip(
        index.keys,
        overlaps,
        neighbor_means(index, overlaps),
        index.contents,
        question,
        strict=False,
    )
    return {
        key: round(
            own
            + neighbors * adjacent
            + LENGTH * min(len(content), LONG) / LONG
            + QUESTION * asked
            - background,
            DIGITS,
        )
        for key, own, adjacent, content, asked in columns
    }


def _shares(index: DocumentIndex, targets: Sequence[set[str]]) -> list[float]:
    """Return the weighted share of each document sentence that occurs in any target."""
    weights = index.weights
    wanted: set[str] = set().union(*targets)
    return [
        sum([weights[word] for word in content & wanted])
        / (sum([weights[word] for word in content]) or 1)
        for content in index.contents
    ]


def neighbor_means(index: DocumentIndex, overlaps: Sequence[float]) -> list[float]:
    """Return the mean overlap of each sentence's two neighbors; 0 beyond its document."""
    means: list[float] = []
    start = 0
    for length in index.lengths:
        padded = [0.0, *overlaps[start : start + length], 0.0]
        means += [(padded[i] + padded[i + 2]) / 2 for i in range(length)]
        start += length
    return means
