"""Scores every sentence of a record by the words it shares: support, relevance, utilization.

Where the constants in ``support`` and ``ranking`` come from: the form of the rule was known
beforehand to do well on RAGBench; weights were chosen on the 2,032 development rows
(``dataset_name`` ending in ``_train`` or ``_validation``) of RAGBench's covidqa, delucionqa,
emanual and msmarco subsets, by rank, and rounded to what a person would write. The 985 rows ending
in ``_test`` were looked at once, after that, and nothing was changed.
"""

from __future__ import annotations

from typing import NamedTuple

from labeler.judges.embedded.index import DocumentIndex
from labeler.judges.embedded.ranking import (
    RELEVANCE_NEIGHBOURS,
    UTILIZATION_NEIGHBOURS,
    overlap,
    rank,
)
from labeler.judges.embedded.support import EMPTY, Evidence, weigh
from labeler.sentences.example import KeyedExample
from labeler.sentences.statements import read_claim
from labeler.sentences.words import EMPTY_TALK, STOP_WORDS, stems, surface_words, written


class Scores(NamedTuple):
    """All scores of a record.

    Attributes:
        evidence: by key of the response sentence, in reading order.
        relevance: by key of the document sentence, in reading order.
        utilization: likewise.
        unseen_question: words of the question that no document has, as written.
    """

    evidence: dict[str, Evidence]
    relevance: dict[str, float]
    utilization: dict[str, float]
    unseen_question: tuple[str, ...]


def score(example: KeyedExample) -> Scores:
    """Score every sentence of a record."""
    claims = [read_claim(sentence) for sentence in example.response]
    asked = surface_words(example.question)
    asked_stems = stems(asked)
    question = set(asked_stems) - STOP_WORDS
    empty = all(claim.words <= EMPTY_TALK for claim in claims)
    # A response that claims nothing says nothing about relevance: the question stands in for it.
    sought = [question] if empty else [claim.content for claim in claims]
    index = DocumentIndex(example, question.union(*sought))
    overlaps = overlap(index, sought)
    return Scores(
        evidence={claim.key: EMPTY if empty else weigh(claim, index) for claim in claims},
        relevance=rank(index, overlaps, RELEVANCE_NEIGHBOURS, index.coverage(question)),
        utilization=(
            dict.fromkeys(index.keys, 0.0)
            if empty
            else rank(index, overlaps, UTILIZATION_NEIGHBOURS)
        ),
        unseen_question=written(asked, asked_stems, question - index.weights.keys()),
    )
