"""Metrics of how well an answer keeps to its question, by questions generated from the answer.

The judge generates questions that the answer would answer, without seeing the one that was asked.
An embedder measures their similarity to it (RAGAS: Es et al. 2023, arXiv 2309.15217). These
metrics read generated questions, not labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import metric
from labeler.plugins.similarity.records import QuestionsRecord

_question_metric = partial(metric, kind="questions", source="RAGAS, arXiv 2309.15217")


@_question_metric(
    "answer_relevancy_similarity",
    definition="mean",
    default=True,
    bounded=False,  # a cosine may be below 0
    needs=("questions",),
    formula="(1/n) Σ cos(E(question_i), E(question))",
)
def mean_similarity(record: QuestionsRecord) -> Ratio:
    """Return the mean similarity of the generated questions to the one that was asked."""
    if record.similarity is None:
        return Ratio.missing("no_vectors")
    return mean_cosine(record.similarity.cosines)


@_question_metric(
    "answer_relevancy_similarity",
    definition="ragas",
    bounded=False,
    needs=("questions", "noncommittal"),
    formula="0 if noncommittal, else (1/n) Σ cos(E(question_i), E(question))",
)
def ragas_similarity(record: QuestionsRecord) -> Ratio:
    """Return the same, and 0 for an answer that evades."""
    # A noncommittal answer needs no vectors.
    return Ratio(0, 1) if record.answer.noncommittal else mean_similarity(record)


@_question_metric(
    "noncommittal",
    definition="flag",
    default=True,
    needs=("noncommittal",),
    formula="1 if the answer evades, else 0",
    higher_is_better=False,
)
def noncommittal(record: QuestionsRecord) -> Ratio:
    """Return 1 for an answer that evades, else 0."""
    return Ratio.flag(record.answer.noncommittal)


def mean_cosine(cosines: Sequence[float | None]) -> Ratio:
    """Mean cosine similarity of the generated questions to the one that was asked.

    Counts: the sum of the cosines over the number of generated questions; from -1 to 1.
    Undefined when: there are no questions, or a text has a vector of zeros.

    Args:
        cosines: one per generated question; ``None`` for a vector of zeros.
    """
    known = [Fraction(cosine) for cosine in cosines if cosine is not None]
    if len(known) < len(cosines):
        return Ratio.missing("zero_vector")
    return Ratio.of(sum(known, Fraction()), len(known), if_empty="no_questions")
